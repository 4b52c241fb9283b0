"""When the tokens of a streamed answer came, and what that makes as a record's `stream`."""

import math

_SECOND = 1_000_000_000


def nearest_rank(ordered, quantile):
    """The value of rank ceil(q * n), without interpolation, as tracejoin defines its quantiles."""
    return ordered[max(0, math.ceil(quantile * len(ordered)) - 1)]


class Tokens:
    """Times of the business events, in nanoseconds of the request's clock."""

    def __init__(self):
        self.first = None
        self.first_visible = None
        self.last = None
        self.events = 0
        self.batched = 0
        self._gaps = []

    def add(self, at, visible, batched):
        """Notes one; `batched` says that it came in one chunk with another."""
        if self.first is None:
            self.first = at
        else:
            self._gaps.append(at - self.last)
        if visible and self.first_visible is None:
            self.first_visible = at
        self.last = at
        self.events += 1
        self.batched += batched

    def summary(self, start, done_received):
        """A record's `stream`; `done_received` is None where the API has no end marker."""
        summary = {"business_events": self.events, "batched_events": self.batched}
        if done_received is not None:
            summary["done_received"] = done_received
        if self.last is not None:
            summary["last_event_ms"] = millis(self.last - start)
        if self._gaps:
            summary.update(self._gap_summary())
        return summary

    def _gap_summary(self):
        ordered = sorted(self._gaps)
        quantiles = {"p50_gap_ms": 0.5, "p95_gap_ms": 0.95, "p99_gap_ms": 0.99, "max_gap_ms": 1.0}
        summary = {name: millis(nearest_rank(ordered, quantile)) for name, quantile in quantiles.items()}
        summary["gaps_over_1s"] = sum(gap > _SECOND for gap in ordered)
        return summary


def millis(nanos):
    """Nanoseconds as milliseconds; six digits keep each nanosecond."""
    return round(nanos / 1_000_000, 6)
