"""The HTTP libraries themselves, each against a server that sends nothing more before the last event was handled."""

import asyncio
import http.client
import importlib.util
import os
import unittest
import urllib.request

import tracejoin_client as tracejoin
from tests import loopback

BODY = b'{"stream": true}'


def needs(library):
    """Leaves a test out where a library is missing, unless whoever runs the tests says that it must be there."""
    missing = importlib.util.find_spec(library) is None and "TRACEJOIN_TEST_ALL" not in os.environ
    return unittest.skipIf(missing, f"{library} is not installed")


class Libraries(unittest.TestCase):
    def streamed(self, send, chunked=True):
        """Runs one streamed request by `send(server, r, handle)` and gives its record."""
        sink = tracejoin.Memory()
        with loopback.Server(chunked) as server:
            with tracejoin.request(sink, request_id="req-1") as r:
                send(server, r)
            self.assertEqual(server.headers_seen["traceparent"], r.context.traceparent)
            self.assertEqual(server.headers_seen["x-request-id"], "req-1")
        [record] = sink.records
        self.check(record)
        return record

    def check(self, record):
        self.assertNotIn("result", record)
        self.assertEqual((record["status"], record["input_tokens"], record["output_tokens"]), (200, 5, 2))
        stream = record["stream"]
        self.assertEqual((stream["business_events"], stream["batched_events"]), (2, 0))
        self.assertTrue(stream["done_received"])
        whole = record.get("duration_ms", record.get("wall_ms"))
        order = [0, record["headers_ms"], record["ttft_ms"], stream["last_event_ms"], whole]
        self.assertEqual(order, sorted(order))
        self.assertEqual(record["ttft_ms"], record["ttft_visible_ms"])

    def take(self, server, events):
        for _ in events:
            server.handled.release()

    def test_urllib(self):
        def send(server, r):
            request = urllib.request.Request(server.url, BODY, r.headers)
            with urllib.request.urlopen(request) as response:
                self.take(server, r.events(response))

        for chunked in (True, False):
            self.assertIn("wall_ms", self.streamed(send, chunked))

    def test_http_client_with_a_connection_of_ones_own(self):
        def send(server, r):
            connection = http.client.HTTPConnection(*server.server_address)
            connection.connect()
            r.connected()
            connection.request("POST", "/v1/chat/completions", BODY, r.headers)
            self.take(server, r.events(connection.getresponse()))
            connection.close()

        self.assertIn("duration_ms", self.streamed(send))

    @needs("requests")
    def test_requests(self):
        import requests

        def send(server, r):
            with requests.post(server.url, BODY, headers=r.headers, stream=True) as response:
                self.take(server, r.events(response))

        for chunked in (True, False):
            self.assertIn("wall_ms", self.streamed(send, chunked))

    @needs("httpx")
    def test_httpx(self):
        import httpx

        def send(server, r):
            options = {"headers": r.headers, "extensions": {"trace": r.trace}}
            with httpx.Client() as client, client.stream("POST", server.url, content=BODY, **options) as response:
                self.take(server, r.events(response))

        for chunked in (True, False):
            record = self.streamed(send, chunked)
            self.assertGreater(record["setup"]["connect_ms"], 0)
            self.assertIn("duration_ms", record)

    @needs("httpx")
    def test_httpx_asynchronously(self):
        import httpx

        async def stream(server, r):
            options = {"headers": r.headers, "extensions": {"trace": r.atrace}}
            async with httpx.AsyncClient() as client:
                async with client.stream("POST", server.url, content=BODY, **options) as response:
                    async for _ in r.aevents(response):
                        server.handled.release()

        self.assertIn("duration_ms", self.streamed(lambda server, r: asyncio.run(stream(server, r))))

    @needs("aiohttp")
    def test_aiohttp(self):
        import aiohttp

        async def stream(server, r):
            async with aiohttp.ClientSession() as session:
                async with session.post(server.url, data=BODY, headers=r.headers) as response:
                    async for _ in r.aevents(response):
                        server.handled.release()

        self.assertIn("wall_ms", self.streamed(lambda server, r: asyncio.run(stream(server, r))))


if __name__ == "__main__":
    unittest.main()
