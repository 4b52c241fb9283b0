import json
import unittest

from tracejoin_client import tokens


def chat(**delta):
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]}


class Meanings(unittest.TestCase):
    def meaning(self, body):
        return tokens.read(json.dumps(body))

    def test_tokens_that_a_person_sees(self):
        for body in [
            chat(content="a"),
            chat(refusal="no"),
            {"choices": [{"text": "a"}]},
            {"type": "response.output_text.delta", "delta": "a"},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
        ]:
            meaning = self.meaning(body)
            self.assertEqual((meaning.token, meaning.visible), (True, True), body)

    def test_tokens_that_nobody_sees(self):
        for body in [
            chat(reasoning_content="a"),
            chat(reasoning="a"),
            chat(tool_calls=[{"index": 0, "function": {"arguments": "{"}}]),
            {"type": "response.function_call_arguments.delta", "delta": "{"},
            {"type": "content_block_delta", "delta": {"type": "thinking_delta", "thinking": "a"}},
        ]:
            meaning = self.meaning(body)
            self.assertEqual((meaning.token, meaning.visible), (True, False), body)

    def test_what_is_no_token(self):
        for body in [
            chat(role="assistant", content=""),
            chat(role="assistant"),
            chat(content=None),
            chat(tool_calls=[]),
            {"choices": [{"delta": {}, "finish_reason": "stop"}]},
            {"choices": [], "usage": {"completion_tokens": 3}},
            {"type": "ping"},
            {"type": "response.output_text.delta", "delta": ""},
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": ""}},
            [],
            "text",
        ]:
            self.assertFalse(self.meaning(body).token, body)
        self.assertFalse(tokens.read("no JSON").token)

    def test_ends(self):
        self.assertTrue(tokens.read(" [DONE]").done)
        for kind in ("response.completed", "message_stop"):
            self.assertTrue(self.meaning({"type": kind}).done, kind)
        self.assertFalse(self.meaning(chat(content="[DONE]")).done)

    def test_counts_stand_where_each_interface_puts_them(self):
        for body in [
            {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 8}},
            {"type": "response.completed", "response": {"usage": {"input_tokens": 5, "output_tokens": 8}}},
            {"type": "message_start", "message": {"usage": {"input_tokens": 5, "output_tokens": 8}}},
        ]:
            self.assertEqual(self.meaning(body).usage, {"input_tokens": 5, "output_tokens": 8}, body)
        self.assertEqual(self.meaning({"usage": {"prompt_tokens": "5", "completion_tokens": -1}}).usage, {})

    def test_a_servers_own_timing_and_failures(self):
        meaning = self.meaning({"choices": [], "metrics": {"queue_time_ms": 4.5, "note": "text", "flag": True}})
        self.assertEqual(meaning.metrics, {"kind": "vllm", "queue_time_ms": 4.5})
        llama = self.meaning({"choices": [], "timings": {"prompt_ms": 20.5, "predicted_ms": 700.0}})
        self.assertEqual(llama.metrics, {"kind": "llama_cpp", "prompt_ms": 20.5, "predicted_ms": 700.0})
        ollama = self.meaning({"model": "m", "done": True, "load_duration": 5, "eval_duration": 7, "eval_count": 3})
        self.assertEqual(ollama.metrics, {"kind": "ollama", "load_duration": 5, "eval_duration": 7, "eval_count": 3})
        self.assertTrue(self.meaning({"error": {"message": "overloaded"}}).failed)
        self.assertTrue(self.meaning({"type": "response.failed"}).failed)
        self.assertFalse(self.meaning({"error": None}).failed)


if __name__ == "__main__":
    unittest.main()
