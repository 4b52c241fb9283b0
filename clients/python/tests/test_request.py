import asyncio
import json
import unittest

import tracejoin_client as tracejoin
from tests.scripted import DONE, Clock, Streamed, chat, event

CONTEXT = tracejoin.TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
USAGE = event({"choices": [], "usage": {"prompt_tokens": 412, "completion_tokens": 4}})
ANSWER = [
    (100, chat(role="assistant", content="")),
    (120, b": keep-alive\n\n"),
    (150, chat(reasoning_content="secret thought")),
    (200, chat(content="secret answer") + chat(content="more")),
    (1300, chat(content="end")),
    (1301, USAGE),
    (1302, DONE),
    (1310, b""),
]


class Measured(unittest.TestCase):
    def setUp(self):
        self.clock = Clock()
        self.sink = tracejoin.Memory()

    def request(self, **options):
        options = {"context": CONTEXT, "clock": self.clock, "wall_clock": lambda: 1_767_323_045_678_000_000, **options}
        return tracejoin.request(self.sink, **options)

    def record(self):
        self.assertEqual(len(self.sink.records), 1)
        return self.sink.records[0]

    def httpx_connects(self, r):
        for at, name in [(2, "connection.connect_tcp.started"), (5, "connection.connect_tcp.complete"),
                         (5, "connection.start_tls.started"), (9, "connection.start_tls.complete"),
                         (10, "http11.send_request_headers.started"),
                         (60, "http11.receive_response_headers.complete")]:
            self.clock.now = at
            r.trace(name, {})

    def test_a_streamed_answer_whose_setup_is_known(self):
        with self.request(request_id="req-1", run="r1", scenario="steady", dimensions={"model": "m-7b"}) as r:
            self.httpx_connects(r)
            events = list(r.events(Streamed(self.clock, ANSWER)))
        self.assertEqual(len(events), 7)
        self.assertEqual(self.record(), {
            "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "request_id": "req-1",
            "started_at": "2026-01-02T03:04:05.678000+00:00",
            "duration_ms": 1300.0,
            "setup": {"blocked_ms": 3.0, "connect_ms": 3.0, "tls_ms": 4.0},
            "headers_ms": 50.0,
            "ttft_ms": 140.0,
            "ttft_visible_ms": 190.0,
            "streaming": True,
            "status": 200,
            "input_tokens": 412,
            "output_tokens": 4,
            "stream": {"business_events": 4, "batched_events": 1, "p50_gap_ms": 50.0, "p95_gap_ms": 1100.0,
                       "p99_gap_ms": 1100.0, "max_gap_ms": 1100.0, "gaps_over_1s": 1, "done_received": True,
                       "last_event_ms": 1290.0},
            "run": "r1",
            "scenario": "steady",
            "dimensions": {"model": "m-7b"},
        })

    def test_without_the_connections_events_only_the_wall_is_known(self):
        with self.request() as r:
            self.clock.now = 60
            list(r.events(Streamed(self.clock, ANSWER)))
        record = self.record()
        self.assertEqual((record["wall_ms"], record["headers_ms"], record["ttft_ms"]), (1310.0, 60.0, 150.0))
        self.assertNotIn("duration_ms", record)
        self.assertNotIn("setup", record)

    def test_a_connection_of_ones_own(self):
        with self.request(due_ns=-3_000_000) as r:
            self.clock.now = 4
            r.connected()
            list(r.events(Streamed(self.clock, ANSWER)))
        record = self.record()
        self.assertEqual((record["duration_ms"], record["client_queue_ms"]), (1306.0, 3.0))
        self.assertEqual(record["setup"], {"blocked_ms": 4.0, "connect_ms": 0.0, "tls_ms": 0.0})

    def test_no_text_of_the_answer_is_kept(self):
        with self.assertRaises(ValueError), self.request() as r:
            script = ANSWER[:4] + [(210, ValueError("secret answer so far"))]
            list(r.events(Streamed(self.clock, script)))
        text = json.dumps(self.record())
        self.assertNotIn("secret", text)
        self.assertEqual((self.record()["result"], self.record()["error"]), ("error", "ValueError"))

    def test_a_stream_that_stops_without_its_end(self):
        with self.request() as r:
            list(r.events(Streamed(self.clock, ANSWER[:5])))
        self.assertEqual(self.record()["stream"]["done_received"], False)
        self.assertNotIn("result", self.record())

    def test_an_interface_without_an_end_marker(self):
        with self.request(end_marker=False) as r:
            list(r.events(Streamed(self.clock, ANSWER[:5])))
        self.assertNotIn("done_received", self.record()["stream"])

    def test_who_stops_at_the_end_marker_has_the_whole_answer(self):
        with self.request() as r:
            for read in r.events(Streamed(self.clock, ANSWER)):
                if read.data == "[DONE]":
                    break
            self.clock.now = 5000
        self.assertEqual(self.record()["wall_ms"], 1302.0)
        self.assertNotIn("result", self.record())

    def test_who_stops_before_has_cancelled(self):
        with self.request() as r:
            next(r.events(Streamed(self.clock, ANSWER)))
            self.clock.now = 500
        self.assertEqual((self.record()["result"], self.record()["wall_ms"]), ("cancelled", 500.0))

    def test_failures_go_by_their_class(self):
        class ReadTimeout(Exception):
            """As httpx and requests name it."""

        for error, result, name, status in [
            (ReadTimeout("x"), "timeout", "ReadTimeout", 0),
            (TimeoutError("x"), "timeout", "TimeoutError", 0),
            (ConnectionRefusedError("x"), "error", "ConnectionRefusedError", 0),
            (asyncio.CancelledError(), "cancelled", None, None),
            (KeyboardInterrupt(), "cancelled", None, None),
        ]:
            self.sink.records.clear()
            with self.assertRaises(type(error)), self.request():
                raise error
            record = self.record()
            self.assertEqual((record["result"], record.get("error"), record.get("status")), (result, name, status))

    def test_a_status_says_more_than_its_exception(self):
        class HTTPStatusError(Exception):
            response = Streamed(None, [], status=503)

        with self.assertRaises(HTTPStatusError), self.request():
            raise HTTPStatusError
        self.assertEqual(self.record()["status"], 503)
        self.assertNotIn("result", self.record())

    def test_what_fails_after_the_answer_is_not_the_requests_fault(self):
        with self.assertRaises(ZeroDivisionError), self.request() as r:
            list(r.events(Streamed(self.clock, ANSWER)))
            raise ZeroDivisionError
        self.assertNotIn("result", self.record())

    def test_an_error_within_a_stream(self):
        with self.request() as r:
            list(r.events(Streamed(self.clock, [(5, event({"error": {"message": "secret"}})), (6, DONE)])))
        self.assertEqual((self.record()["result"], self.record()["error"]), ("error", "error_in_answer"))

    def test_an_answer_in_one_piece(self):
        class Whole:
            status_code = 200
            headers = {"server-timing": "queue;dur=40"}

            @staticmethod
            def json():
                return {"usage": {"prompt_tokens": 5, "completion_tokens": 8}}

        with self.request() as r:
            self.clock.now = 70
            body = r.answer(Whole())
            self.clock.now = 90
        self.assertEqual(body["usage"]["completion_tokens"], 8)
        record = self.record()
        self.assertEqual((record["wall_ms"], record["streaming"], record["output_tokens"]), (70.0, False, 8))
        self.assertEqual(record["response_metrics"], {"kind": "server_timing", "server-timing": "queue;dur=40"})
        self.assertNotIn("stream", record)

    def test_an_asynchronous_answer(self):
        async def run():
            async with self.request() as r:
                await r.atrace("http11.send_request_headers.started", {})
                return [event async for event in r.aevents(Streamed(self.clock, ANSWER))]

        self.assertEqual(len(asyncio.run(run())), 7)
        self.assertEqual(self.record()["duration_ms"], 1310.0)

    def test_ids_are_random_and_valid(self):
        contexts = [tracejoin.TraceContext.new() for _ in range(100)]
        self.assertEqual(len({context.trace_id for context in contexts}), 100)
        for context in contexts:
            self.assertRegex(context.traceparent, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$")


if __name__ == "__main__":
    unittest.main()
