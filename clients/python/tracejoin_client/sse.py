"""Server-sent events out of the bytes of an answer, however they are cut into chunks."""

from dataclasses import dataclass

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Event:
    """One event that has data."""

    data: str
    name: str = ""
    id: str = ""


class Parser:
    """Takes chunks, gives whole events. Comments and events without data are left out, as the standard says."""

    def __init__(self):
        self._rest = b""
        self._after_cr = False
        self._first = True
        self._data = []
        self._name = ""
        self._id = ""

    def feed(self, chunk):
        """The events that end in this chunk."""
        events = []
        for line in self._lines(chunk):
            event = self._line(line)
            if event is not None:
                events.append(event)
        return events

    def _lines(self, chunk):
        """Whole lines; they end with CR, LF, or both, and both may lie in two chunks."""
        if not chunk:
            return []
        cut = self._after_cr and chunk.startswith(b"\n")
        self._after_cr = chunk.endswith(b"\r")
        text = (self._rest + chunk[cut:]).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *lines, self._rest = text.split(b"\n")
        return lines

    def _line(self, line):
        if self._first:
            line = line[len(_BOM):] if line.startswith(_BOM) else line
            self._first = False
        if not line:
            return self._dispatch()
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        text = value.decode("utf-8", "replace")
        if name == b"data":
            self._data.append(text)
        elif name == b"event":
            self._name = text
        elif name == b"id" and "\0" not in text:
            self._id = text
        return None

    def _dispatch(self):
        data, name = self._data, self._name
        self._data, self._name = [], ""
        return Event("\n".join(data), name, self._id) if data else None
