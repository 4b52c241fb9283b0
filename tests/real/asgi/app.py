"""A FastAPI application under the real OpenTelemetry instrumentation, streaming server-sent events.

A stop-watch outside the instrumentation measures with a monotonic clock when the first and the
last part of each body were sent, so that a test can hold what tracejoin computed against it.

The request's body: {"queue_ms": n, "prefill_ms": n, "tokens": n, "token_ms": n, "after_ms": n};
after_ms is spent in a background task, when the answer is complete.
    GET /measured    {"<trace id>": {"ttft_ns": …, "total_ns": …, "left_ns": …}, …}
    POST /flush      exports every span that is still held back
"""

import asyncio
import json
import os
import socket
import time

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import StreamingResponse
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.fastapi import FastAPIInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from starlette.background import BackgroundTask

resource = Resource.create({"service.name": "asgi-app", "service.instance.id": f"app-{os.getpid()}"})
tracing = TracerProvider(resource=resource)
tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(insecure=True)))
tracer = tracing.get_tracer("app")

app = FastAPI()
measured: dict[str, dict] = {}


def event(content: str) -> str:
    return "data: " + json.dumps({"choices": [{"delta": {"content": content}}]}) + "\n\n"


async def answer(asked: dict):
    with tracer.start_as_current_span("inference.acquire_slot"):
        await asyncio.sleep(asked["queue_ms"] / 1000)
    with tracer.start_as_current_span("inference.generate"):
        await asyncio.sleep(asked["prefill_ms"] / 1000)
        yield event("first")
        for _ in range(asked["tokens"] - 1):
            await asyncio.sleep(asked["token_ms"] / 1000)
            yield event("next")
    yield "data: [DONE]\n\n"


@app.post("/v1/chat/completions")
async def complete(request: Request) -> StreamingResponse:
    asked = await request.json()
    after = BackgroundTask(asyncio.sleep, asked["after_ms"] / 1000)
    return StreamingResponse(answer(asked), media_type="text/event-stream", background=after)


@app.get("/measured")
async def show() -> dict:
    return measured


@app.post("/flush")
async def flush() -> dict:
    return {"flushed": await asyncio.to_thread(tracing.force_flush)}


class Stopwatch:
    """Around the instrumented application: what it measures includes what the instrumentation costs."""

    def __init__(self, inner):
        self.inner = inner

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] == "/flush":
            return await self.inner(scope, receive, send)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        watch = measured.setdefault(headers["traceparent"].split("-")[1], {})
        started = time.monotonic_ns()

        async def timed(message):
            if message["type"] == "http.response.body" and message.get("body"):
                watch.setdefault("ttft_ns", time.monotonic_ns() - started)
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                watch["total_ns"] = time.monotonic_ns() - started

        await self.inner(scope, receive, timed)
        watch["left_ns"] = time.monotonic_ns() - started


FastAPIInstrumentor.instrument_app(app, tracer_provider=tracing, excluded_urls="measured,flush")

listener = socket.create_server(("127.0.0.1", 0))
print(f"app listening on http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
uvicorn.Server(uvicorn.Config(Stopwatch(app), log_level="warning")).run(sockets=[listener])
