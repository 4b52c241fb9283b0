"""A clock and answers that tests write themselves, so that every duration in a record is known beforehand."""

import json

MS = 1_000_000


class Clock:
    """Stands still until it is told the time, in milliseconds."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return int(self.now * MS)


def event(body):
    """The bytes of one event."""
    data = body if isinstance(body, str) else json.dumps(body)
    return f"data: {data}\n\n".encode()


def chat(**delta):
    """A chunk of a chat answer."""
    return event({"choices": [{"delta": delta}]})


DONE = event("[DONE]")


class Streamed:
    """What httpx gives out: chunks at their times. A chunk that is an exception is raised."""

    def __init__(self, clock, script, status=200, headers=None):
        self.status_code = status
        self.headers = headers or {}
        self._clock, self._script = clock, script

    def iter_bytes(self):
        for at, chunk in self._script:
            self._clock.now = at
            if isinstance(chunk, Exception):
                raise chunk
            yield chunk

    async def aiter_bytes(self):
        for chunk in self.iter_bytes():
            yield chunk
