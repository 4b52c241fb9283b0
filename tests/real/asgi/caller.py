"""Calls the application with aiohttp under its real OpenTelemetry instrumentation, and sends no record.

    caller.py URL COUNT BODY
Prints a line for each call: {"trace_id": …, "span_id": …, "headers_ns": …, "total_ns": …}.
"""

import asyncio
import json
import os
import sys
import time

import aiohttp
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.aiohttp_client import AioHttpClientInstrumentor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


async def main(url: str, count: int, body: dict) -> None:
    resource = Resource.create({"service.name": "caller", "service.instance.id": f"caller-{os.getpid()}"})
    tracing = TracerProvider(resource=resource)
    tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(insecure=True)))
    calls = []
    AioHttpClientInstrumentor().instrument(
        tracer_provider=tracing,
        request_hook=lambda span, _: calls.append(span.get_span_context()),
    )
    async with aiohttp.ClientSession() as session:
        for _ in range(count):
            started = time.monotonic_ns()
            async with session.post(url, json=body) as response:
                headers = time.monotonic_ns() - started
                await response.read()
            total = time.monotonic_ns() - started
            call = calls.pop()
            ids = {
                "trace_id": trace.format_trace_id(call.trace_id),
                "span_id": trace.format_span_id(call.span_id),
            }
            print(json.dumps({**ids, "headers_ns": headers, "total_ns": total}))
    tracing.shutdown()


asyncio.run(main(sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])))
