"""The bytes of an answer as they arrive, from the response objects of urllib, requests, httpx and aiohttp.

Nothing of these libraries is imported: a response is known by what it can do.
"""

import json

_SIZE = 65536

# What tells more goes first.
_OWN_TIMING = {
    "vllm_headers": ("x-vllm-total-time", "x-vllm-queue-time", "x-vllm-prefill-time", "x-vllm-decode-time",
                     "x-vllm-inference-time"),
    "tgi_headers": ("x-total-time", "x-queue-time", "x-inference-time"),
    "server_timing": ("server-timing",),
    "litellm_headers": ("x-litellm-overhead-duration-ms",),
}


def status(response):
    """The HTTP status, or None."""
    for name in ("status_code", "status"):
        value = getattr(response, name, None)
        if isinstance(value, int):
            return value
    return None


def header(response, name):
    """A header's value, or None; all these libraries look them up without regard to case."""
    headers = getattr(response, "headers", None)
    return headers.get(name) if headers is not None else None


def chunks(response):
    """Chunks as soon as they are there, decompressed; waiting for a full buffer would hide when tokens came."""
    if hasattr(response, "iter_bytes"):  # httpx
        return response.iter_bytes()
    if hasattr(response, "iter_content"):  # requests
        return _requests_chunks(response)
    if hasattr(response, "read1"):  # http.client, which urllib gives out
        return iter(lambda: response.read1(_SIZE), b"")
    return iter(response)


def _requests_chunks(response):
    raw = response.raw
    if getattr(raw, "chunked", False):
        return response.iter_content(chunk_size=None)
    if hasattr(raw, "read1"):
        return iter(lambda: raw.read1(_SIZE, decode_content=True), b"")
    # An older urllib3 waits until a chunk is full, so chunks are made as small as can be.
    return response.iter_content(chunk_size=1)


def async_chunks(response):
    """The same of an asynchronous response."""
    if hasattr(response, "aiter_bytes"):  # httpx
        return response.aiter_bytes()
    content = getattr(response, "content", None)
    if hasattr(content, "iter_any"):  # aiohttp
        return content.iter_any()
    return response.__aiter__()


def json_of(response):
    """The JSON of an answer that was read whole, or None where it is none."""
    try:
        return response.json() if hasattr(response, "json") else json.loads(response.read())
    except ValueError:
        return None


def own_timing(response):
    """The headers in which an answer tells its own timing, as a record carries them, or None."""
    for kind, names in _OWN_TIMING.items():
        told = {name: header(response, name) for name in names}
        told = {name: value for name, value in told.items() if isinstance(value, str)}
        if told:
            return {"kind": kind, **told}
    return None
