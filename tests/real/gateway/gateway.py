"""A small LLM gateway under the real OpenTelemetry SDK.

It waits for a GPU slot, "generates" for a time that the request itself names, and answers
whole or as server-sent events. Beside its spans it measures every phase with a monotonic
clock of its own, so that a test can hold what tracejoin computed against what really happened.

The request's body: {"stream": bool, "output_tokens": n, "prefill_ms": n, "token_ms": n}.
    PUT /slots {"slots": n}   resizes the GPU queue (call it while no request is running)
    GET /measured             {"<trace id>": {"gateway_ns": …, "total_ns": …}, …}
    POST /flush               exports every span that is still held back
"""

import asyncio
import json
import os
import time
from contextlib import contextmanager

from aiohttp import web
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

ROUTE = "/v1/chat/completions"
MODEL = "m-7b"


def provider() -> TracerProvider:
    """The SDK; the exporter's endpoint and the processor's delays come from OTEL_* variables."""
    resource = Resource.create(
        {"service.name": "llm-gateway", "service.instance.id": f"gateway-{os.getpid()}"}
    )
    made = TracerProvider(resource=resource)
    made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(insecure=True)))
    return made


class Slots:
    """The GPU's queue: a first-come semaphore whose size can change."""

    def __init__(self, size: int):
        self.size = size
        self.semaphore = asyncio.Semaphore(size)

    async def resize(self, size: int) -> None:
        for _ in range(size, self.size):
            await self.semaphore.acquire()
        for _ in range(self.size, size):
            self.semaphore.release()
        self.size = size


class Stopwatch:
    """Nanoseconds by phase for one request, by the monotonic clock."""

    def __init__(self):
        self.started = time.monotonic_ns()
        self.phases = {"gateway_ns": 0, "gpu_queue_ns": 0, "generation_ns": 0}

    @contextmanager
    def measure(self, phase: str):
        begun = time.monotonic_ns()
        try:
            yield
        finally:
            self.phases[phase] += time.monotonic_ns() - begun

    def elapsed(self) -> int:
        return time.monotonic_ns() - self.started


class Gateway:
    def __init__(self, tracing: TracerProvider, slots: int):
        self.tracing = tracing
        self.tracer = tracing.get_tracer("gateway")
        self.slots = Slots(slots)
        self.measured: dict[str, dict] = {}

    async def complete(self, request: web.Request) -> web.StreamResponse:
        parent = TraceContextTextMapPropagator().extract(request.headers)
        watch = Stopwatch()
        attributes = {"http.request.method": "POST", "http.route": ROUTE}
        with self.tracer.start_as_current_span(
            f"POST {ROUTE}", context=parent, kind=SpanKind.SERVER, attributes=attributes
        ) as entry:
            response = await self.answer(request, entry, watch)
            entry.set_attribute("http.response.status_code", response.status)
        trace_id = trace.format_trace_id(entry.get_span_context().trace_id)
        self.measured[trace_id] = {**watch.phases, "total_ns": watch.elapsed()}
        return response

    async def answer(self, request, entry, watch) -> web.StreamResponse:
        await self.gateway_step("auth.check", watch, 0.002)
        with watch.measure("gateway_ns"), self.tracer.start_as_current_span("request.prepare"):
            asked = await request.json()
            await asyncio.sleep(0.001)
        entry.set_attribute("gen_ai.request.stream", asked["stream"])
        await self.gateway_step("route.select", watch, 0.001)

        await self.wait_for_slot(watch)
        try:
            response = await self.generate(request, asked, entry, watch)
        finally:
            self.slots.semaphore.release()

        with watch.measure("gateway_ns"), self.tracer.start_as_current_span("response.write"):
            await self.write_end(response, asked)
        return response

    async def gateway_step(self, name: str, watch: Stopwatch, seconds: float) -> None:
        with watch.measure("gateway_ns"), self.tracer.start_as_current_span(name):
            await asyncio.sleep(seconds)

    async def wait_for_slot(self, watch: Stopwatch) -> None:
        attributes = {"llm.phase": "queue", "llm.model": MODEL, "llm.pool": "a100"}
        with (
            watch.measure("gpu_queue_ns"),
            self.tracer.start_as_current_span(
                "inference.acquire_slot", attributes=attributes
            ) as span,
        ):
            await self.slots.semaphore.acquire()
            span.set_attribute("llm.queue.outcome", "acquired")

    async def generate(self, request, asked, entry, watch) -> web.StreamResponse:
        streaming, tokens = asked["stream"], asked["output_tokens"]
        content_type = "text/event-stream" if streaming else "application/json"
        response = web.StreamResponse(headers={"content-type": content_type})
        attributes = {
            "llm.phase": "generation",
            "llm.model": MODEL,
            "gen_ai.request.max_tokens": tokens,
        }
        with (
            watch.measure("generation_ns"),
            self.tracer.start_as_current_span(
                "inference.generate", kind=SpanKind.CLIENT, attributes=attributes
            ) as span,
        ):
            await asyncio.sleep(asked["prefill_ms"] / 1e3)
            await response.prepare(request)
            for index in range(tokens):
                await asyncio.sleep(asked["token_ms"] / 1e3 if index else 0)
                if streaming:
                    await response.write(event({"content": f"token{index} "}))
                if streaming and index == 0:
                    entry.add_event("first_token")
                    watch.phases["ttft_ns"] = watch.elapsed()
            span.set_attribute("gen_ai.usage.output_tokens", tokens)
            span.set_attribute("gen_ai.response.finish_reasons", ["stop"])
        return response

    async def write_end(self, response: web.StreamResponse, asked: dict) -> None:
        if asked["stream"]:
            await response.write(b"data: [DONE]\n\n")
        else:
            text = "".join(f"token{index} " for index in range(asked["output_tokens"]))
            choice = {"message": {"role": "assistant", "content": text}}
            await response.write(json.dumps({"choices": [choice]}).encode())
        await response.write_eof()

    async def resize(self, request: web.Request) -> web.Response:
        await self.slots.resize((await request.json())["slots"])
        return web.json_response({"slots": self.slots.size})

    async def show_measured(self, _: web.Request) -> web.Response:
        return web.json_response(self.measured)

    async def flush(self, _: web.Request) -> web.Response:
        flushed = await asyncio.to_thread(self.tracing.force_flush)
        return web.json_response({"flushed": flushed})


def event(delta: dict) -> bytes:
    return b"data: " + json.dumps({"choices": [{"delta": delta}]}).encode() + b"\n\n"


async def serve() -> None:
    tracing = provider()
    gateway = Gateway(tracing, int(os.environ.get("GATEWAY_SLOTS", "8")))
    app = web.Application()
    app.add_routes(
        [
            web.post(ROUTE, gateway.complete),
            web.put("/slots", gateway.resize),
            web.get("/measured", gateway.show_measured),
            web.post("/flush", gateway.flush),
        ]
    )
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", int(os.environ.get("GATEWAY_PORT", "0")))
    await site.start()
    print(f"gateway listening on http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    try:
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()
        tracing.shutdown()


if __name__ == "__main__":
    try:
        asyncio.run(serve())
    except KeyboardInterrupt:
        pass
