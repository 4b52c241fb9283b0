"""What an event of a streamed answer means: a token that a person sees, one that nobody sees, an end, or nothing.

Reads the streams of OpenAI's chat, completions and responses APIs, which vLLM, SGLang and most gateways speak too, and
of Anthropic's messages API. Only counts, names and lengths leave this module, never text.
"""

import json
from dataclasses import dataclass, field
from typing import Optional

# Deltas of the typed APIs by whether a person sees their text.
_DELTAS = {
    "response.output_text.delta": True,
    "response.refusal.delta": True,
    "response.reasoning_text.delta": False,
    "response.reasoning_summary_text.delta": False,
    "response.function_call_arguments.delta": False,
    "text_delta": True,
    "thinking_delta": False,
    "input_json_delta": False,
}
_DELTA_TEXTS = ("text", "thinking", "partial_json")
_ENDS = ("response.completed", "response.incomplete", "message_stop")


@dataclass
class Meaning:
    """What one event tells."""

    token: bool = False
    visible: bool = False
    done: bool = False
    failed: bool = False
    usage: dict = field(default_factory=dict)
    metrics: Optional[dict] = None


def read(data):
    """The meaning of an event's data."""
    if data.strip() == "[DONE]":
        return Meaning(done=True)
    try:
        body = json.loads(data)
    except ValueError:
        return Meaning()
    if not isinstance(body, dict):
        return Meaning()
    meaning = read_body(body)
    if isinstance(body.get("type"), str):
        _read_typed(body, meaning)
    for choice in _dicts(body.get("choices")):
        _read_choice(choice, meaning)
    return meaning


def read_body(body):
    """What a whole answer and a streamed chunk tell alike: tokens counted by the server, its own timing, a failure."""
    meaning = Meaning(failed=bool(body.get("error")))
    # The typed APIs put both one level deeper.
    for part in [body] + [body[name] for name in ("response", "message") if isinstance(body.get(name), dict)]:
        if isinstance(part.get("usage"), dict):
            meaning.usage.update(_usage(part["usage"]))
    for kind, own in {"vllm": body.get("metrics"), "llama_cpp": body.get("timings"), "ollama": _ollama(body)}.items():
        if isinstance(own, dict):
            meaning.metrics = {"kind": kind, **_numbers(own)}
    return meaning


def _read_typed(body, meaning):
    kind, delta = body["type"], body.get("delta")
    if isinstance(delta, dict):
        kind = delta.get("type")
        delta = next((delta[name] for name in _DELTA_TEXTS if name in delta), "")
    if kind in _DELTAS and delta:
        meaning.token = True
        meaning.visible = _DELTAS[kind]
    meaning.done = body["type"] in _ENDS
    meaning.failed = meaning.failed or body["type"] in ("error", "response.failed")


def _read_choice(choice, meaning):
    delta = choice.get("delta")
    delta = delta if isinstance(delta, dict) else {}
    seen = choice.get("text") or delta.get("content") or delta.get("refusal")
    unseen = delta.get("reasoning_content") or delta.get("reasoning") or delta.get("function_call")
    if seen:
        meaning.visible = True
    if seen or unseen or _dicts(delta.get("tool_calls")):
        meaning.token = True


def _usage(usage):
    """Token counts under the names of a record. Both families of names are in use."""
    counts = {
        "input_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "output_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
    }
    return {name: count for name, count in counts.items() if isinstance(count, int) and count >= 0}


def _ollama(body):
    """Ollama's own interface tells its timing at the top of its last object, in nanoseconds."""
    own = {name: value for name, value in body.items() if name.endswith("_duration") or name.endswith("eval_count")}
    return own or None


def _numbers(values):
    return {name: value for name, value in values.items() if type(value) in (int, float)}


def _dicts(value):
    return [member for member in value if isinstance(member, dict)] if isinstance(value, list) else []
