"""One request, measured."""

import asyncio
import time
from datetime import datetime, timezone

from . import bytes_of, tokens
from .connection import Connection
from .ids import TraceContext
from .sse import Parser
from .stream import Tokens, millis

_GIVEN_UP = (asyncio.CancelledError, KeyboardInterrupt, GeneratorExit)


def request(sink, **options):
    """A request whose record goes to `sink` when the `with` block ends; see `Request` for the options."""
    return Request(sink, **options)


class Request:
    """A context manager around one request. Its clock starts with the block, so build the body before it.

    sink        what takes the record: `Server`, `File`, or anything with `add(record)`
    context     a `TraceContext` of your own; by default random ids
    request_id  also sent as x-request-id, for systems that replace the trace id
    run, scenario, dimensions   labels of the record
    end_marker  False where the API closes a stream without one, so that its absence means nothing
    due_ns      when the request should have started, by `clock`; what it waited since then is kept apart
    clock       a monotonic clock in nanoseconds
    """

    def __init__(self, sink, *, context=None, request_id=None, run=None, scenario=None, dimensions=None,
                 end_marker=True, due_ns=None, clock=time.perf_counter_ns, wall_clock=time.time_ns):
        self.context = context or TraceContext.new()
        self.request_id = request_id
        self._sink, self._end_marker, self._due = sink, end_marker, due_ns
        self._clock, self._wall_clock = clock, wall_clock
        self._labels = {"run": run, "scenario": scenario, "dimensions": dimensions}
        self._connection = Connection(clock)
        self._tokens = Tokens()
        self._streaming = None
        self._open = self._done = False
        self._status = self._result = self._error = None
        self._last_chunk = self._end = None
        self._usage, self._metrics = {}, None

    @property
    def headers(self):
        """What must go with the request for the two sides to be joined."""
        headers = {"traceparent": self.context.traceparent}
        if self.request_id is not None:
            headers["x-request-id"] = self.request_id
        return headers

    @property
    def trace_id(self):
        """Under which tracejoin shows the request."""
        return self.context.trace_id

    def __enter__(self):
        self._started_at = self._wall_clock()
        self._connection.start()
        return self

    async def __aenter__(self):
        return self.__enter__()

    def __exit__(self, kind, error, _traceback):
        now = self._clock()
        if error is not None:
            self._failed(error, now)
        elif self._open and not self._done:
            self._result = self._result or "cancelled"
        if self._end is None:
            self._end = self._last_chunk if self._open and self._done else now
        self._sink.add(self.record())
        return False

    async def __aexit__(self, kind, error, traceback):
        return self.__exit__(kind, error, traceback)

    def connected(self):
        """Call it when the connection is there and before sending, where you open it yourself."""
        self._connection.ready()

    def trace(self, name, _info):
        """For httpx: `extensions={"trace": r.trace}` tells the connection's setup from the request."""
        self._connection.event(name)

    async def atrace(self, name, info):
        """The same for httpx.AsyncClient: `extensions={"trace": r.atrace}`."""
        self.trace(name, info)

    def answer(self, response):
        """Notes an answer that is not streamed and gives its JSON, or None where it is none."""
        self._end = self._clock()
        self._streaming = False
        self._status = bytes_of.status(response)
        self._metrics = bytes_of.own_timing(response)
        body = bytes_of.json_of(response)
        if isinstance(body, dict):
            self._note(tokens.read_body(body))
        return body

    def events(self, response):
        """The events of a streamed answer as they come, each noted."""
        self._opened(response)
        parser = Parser()
        try:
            for chunk in bytes_of.chunks(response):
                yield from self._chunk(parser, chunk)
        except Exception as error:
            self._failed(error, self._clock())
            raise
        self._closed()

    async def aevents(self, response):
        """The same of an asynchronous answer."""
        self._opened(response)
        parser = Parser()
        try:
            async for chunk in bytes_of.async_chunks(response):
                for event in self._chunk(parser, chunk):
                    yield event
        except Exception as error:
            self._failed(error, self._clock())
            raise
        self._closed()

    def _opened(self, response):
        self._connection.headers()
        self._streaming = self._open = True
        self._status = bytes_of.status(response)
        self._metrics = bytes_of.own_timing(response)

    def _chunk(self, parser, chunk):
        """Everything of a chunk is noted before any of it is given out, since what takes it may take its time."""
        self._last_chunk = self._clock()
        events = parser.feed(chunk)
        meanings = [tokens.read(event.data) for event in events]
        business = [meaning for meaning in meanings if meaning.token]
        for at, meaning in enumerate(business):
            self._tokens.add(self._last_chunk, meaning.visible, batched=at > 0)
        for meaning in meanings:
            self._note(meaning)
        return events

    def _closed(self):
        self._end = self._clock()
        self._open = False

    def _note(self, meaning):
        self._usage.update(meaning.usage)
        self._done = self._done or meaning.done
        if meaning.metrics is not None:
            self._metrics = meaning.metrics
        if meaning.failed:
            self._result, self._error = "error", "error_in_answer"

    def _failed(self, error, now):
        """Notes a failure by its class; its text may quote the prompt. After the answer's end it is not the request's."""
        if self._end is not None:
            return
        self._end = now
        answer = getattr(error, "response", None)
        self._status = self._status or bytes_of.status(error if answer is None else answer)
        name = type(error).__name__
        if isinstance(error, _GIVEN_UP):
            self._result = "cancelled"
        elif isinstance(error, TimeoutError) or "timeout" in name.lower():
            self._result, self._error = "timeout", name
        elif (self._status or 0) < 400:
            self._result, self._error = "error", name

    def record(self):
        """The record as tracejoin takes it."""
        record = {
            "traceparent": self.context.traceparent,
            "request_id": self.request_id,
            "started_at": datetime.fromtimestamp(self._started_at / 1e9, timezone.utc).isoformat(),
            "client_queue_ms": self._queued(),
            **self._connection.durations(self._end),
            "streaming": self._streaming,
            "status": self._answered(),
            "result": self._result,
            "error": self._error,
            "response_metrics": self._metrics,
            **self._usage,
            **self._labels,
        }
        if self._streaming:
            record.update(self._stream())
        return {name: value for name, value in record.items() if value is not None}

    def _answered(self):
        """The status; 0 where the request failed before there was any."""
        return 0 if self._status is None and self._error is not None else self._status

    def _queued(self):
        return None if self._due is None else millis(max(0, self._connection.started - self._due))

    def _stream(self):
        start = self._connection.sending_from
        since = {"ttft_ms": self._tokens.first, "ttft_visible_ms": self._tokens.first_visible}
        stream = {name: millis(at - start) for name, at in since.items() if at is not None}
        stream["stream"] = self._tokens.summary(start, self._done if self._end_marker else None)
        return stream
