"""Streams answers through the Python client: drive.py URL TRACEJOIN COUNT. Prints what became of the records."""

import asyncio
import json
import sys

import httpx
import tracejoin_client as tracejoin

BODY = {"stream": True, "output_tokens": 5, "prefill_ms": 10, "token_ms": 4}
AT_ONCE = 4


async def one(client, url, sink):
    async with tracejoin.request(sink, run="python", dimensions={"model": "m-7b"}) as r:
        options = {"json": BODY, "headers": r.headers, "extensions": {"trace": r.atrace}}
        async with client.stream("POST", url, **options) as response:
            async for _ in r.aevents(response):
                pass
    return r.trace_id


async def main(url, server, count):
    traces = []
    with tracejoin.Server(server) as sink:
        async with httpx.AsyncClient(timeout=30) as client:
            for _ in range(0, count, AT_ONCE):
                traces += await asyncio.gather(*(one(client, url, sink) for _ in range(AT_ONCE)))
    print(json.dumps({"accepted": sink.accepted, "dropped": sink.dropped, "traces": traces}))


asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
