"""From the start of a request to its headers: what of it was setup of the connection."""

from .stream import millis

# The events of httpx (httpcore) that are the edges of the parts, without the layer's name in front.
_EDGES = {
    "connect_tcp.started": "tcp_from",
    "connect_tcp.complete": "tcp_to",
    "start_tls.started": "tls_from",
    "start_tls.complete": "tls_to",
    "send_request_headers.started": "send_from",
    "receive_response_headers.complete": "headers_at",
}


class Connection:
    """Edges in nanoseconds of the clock. Of each the first counts: a redirect or a retry belongs to the same request."""

    def __init__(self, clock):
        self._clock = clock
        self._edges = {}
        self.started = None

    def start(self):
        """Starts the request."""
        self.started = self._clock()

    def ready(self):
        """The connection is there, and the request is sent now."""
        self._mark("send_from")

    def headers(self):
        """The answer's headers are there."""
        self._mark("headers_at")

    def event(self, name):
        """One event of httpx."""
        edge = _EDGES.get(name.partition(".")[2])
        if edge is not None:
            self._mark(edge)

    def _mark(self, edge):
        self._edges.setdefault(edge, self._clock())

    @property
    def sending_from(self):
        """The start of sending; where setup cannot be told apart, that of the request."""
        return self._edges.get("send_from", self.started)

    def durations(self, end):
        """A record's durations: `wall_ms` alone where setup is unknown, else `setup` and `duration_ms`."""
        sending = self._edges.get("send_from")
        durations = {"wall_ms": millis(end - self.started)}
        if sending is not None:
            durations = {"duration_ms": millis(end - sending), "setup": self._setup(sending - self.started)}
        if "headers_at" in self._edges:
            durations["headers_ms"] = millis(self._edges["headers_at"] - self.sending_from)
        return durations

    def _setup(self, whole):
        """Disjoint parts of the time before sending. httpx looks names up within its connect."""
        parts = {"connect_ms": self._between("tcp_from", "tcp_to"), "tls_ms": self._between("tls_from", "tls_to")}
        blocked = max(0, whole - sum(parts.values()))
        return {"blocked_ms": millis(blocked), **{name: millis(part) for name, part in parts.items()}}

    def _between(self, start, end):
        if start in self._edges and end in self._edges:
            return self._edges[end] - self._edges[start]
        return 0
