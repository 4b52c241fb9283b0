"""Measures requests to LLM servers from the client's side, for tracejoin to join with the server's spans.

    import tracejoin_client as tracejoin

    with tracejoin.Server("http://127.0.0.1:8080") as sink:
        with tracejoin.request(sink, dimensions={"model": "m-7b"}) as r:
            response = requests.post(url, json=body, headers=r.headers, stream=True)
            for event in r.events(response):
                ...

Durations come from one monotonic clock. Neither prompts nor answers are kept, and the text of an error is not either.
"""

from .ids import TraceContext
from .request import Request, request
from .sinks import File, Memory, Server
from .sse import Event, Parser

__all__ = ["Event", "File", "Memory", "Parser", "Request", "Server", "TraceContext", "request"]
