"""W3C Trace Context ids."""

import secrets
from dataclasses import dataclass


def _random_id(size):
    """Random bytes as hexadecimal digits; all zeros is no valid id."""
    while True:
        value = secrets.token_hex(size)
        if value.strip("0"):
            return value


@dataclass(frozen=True)
class TraceContext:
    """The ids that go with one request: its trace, and the span that the server names as its parent."""

    trace_id: str
    span_id: str
    sampled: bool = True

    @classmethod
    def new(cls):
        """Random ids from the system's generator, so that processes that were forked do not repeat one another."""
        return cls(_random_id(16), _random_id(8))

    @property
    def traceparent(self):
        """The header's value."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"
