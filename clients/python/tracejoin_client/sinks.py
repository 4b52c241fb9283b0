"""Where records go."""

import json
import queue
import threading
import time
import urllib.error
import urllib.request
import warnings
from collections import Counter

_BUSY = (429, 502, 503, 504)


class Memory:
    """Keeps records in a list."""

    def __init__(self):
        self.records = []

    def add(self, record):
        """Takes a record."""
        self.records.append(record)


class File:
    """Writes one JSON object a line, for `tracejoin import records`."""

    def __init__(self, path):
        self._file = open(path, "a", encoding="utf-8")
        self._lock = threading.Lock()

    def add(self, record):
        """Writes a record; a process that is killed later does not lose it."""
        line = json.dumps(record, separators=(",", ":"))
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()

    def close(self):
        """Closes the file."""
        self._file.close()

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()


class Server:
    """Sends records to a tracejoin server from a thread of its own, so that no request waits for it.

    After `close`, which waits until all is sent: `accepted`, `duplicates`, `rejected` (a count by reason), and `dropped`
    (records for which there was no room, or which the server would not take within `retry_for` seconds).
    """

    def __init__(self, url, *, batch=500, every=1.0, room=100_000, retry_for=30.0, timeout=10.0):
        self._url = url.rstrip("/") + "/api/v1/records"
        self._batch, self._every, self._retry_for, self._timeout = batch, every, retry_for, timeout
        self._records = queue.Queue(maxsize=room)
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self.accepted = self.duplicates = self.dropped = 0
        self.rejected = Counter()
        self._thread = threading.Thread(target=self._run, name="tracejoin", daemon=True)
        self._thread.start()

    def add(self, record):
        """Takes a record; where there is no room left it is counted as dropped."""
        try:
            self._records.put_nowait(record)
        except queue.Full:
            self._drop(1)

    def close(self):
        """Sends what is left and stops. Warns of what the server did not take."""
        self._closing.set()
        self._thread.join()
        if self.dropped or self.rejected:
            reasons = "; ".join(f"{count}: {reason}" for reason, count in self.rejected.most_common(3))
            warnings.warn(f"tracejoin: {self.dropped} records dropped, {sum(self.rejected.values())} rejected {reasons}")

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        self.close()

    def _drop(self, count):
        with self._lock:
            self.dropped += count

    def _run(self):
        while True:
            closing = self._closing.is_set()
            batch = self._gather(0 if closing else self._every)
            if batch:
                self._send(batch)
            elif closing:
                return

    def _gather(self, wait):
        """The records of at most `wait` seconds, or a full batch."""
        batch, until = [], time.monotonic() + wait
        while len(batch) < self._batch and not (wait and self._closing.is_set()):
            try:
                batch.append(self._records.get(timeout=min(0.05, max(0.001, until - time.monotonic()))))
            except queue.Empty:
                if time.monotonic() >= until:
                    break
        return batch

    def _send(self, batch):
        body = "\n".join(json.dumps(record, separators=(",", ":")) for record in batch).encode()
        until, wait = time.monotonic() + self._retry_for, 0.5
        while True:
            status, asked, answer = self._post(body)
            if status in (200, 400) and "rejected" in answer:
                return self._count(answer)
            pause = wait if asked is None else asked
            if (status is not None and status not in _BUSY) or time.monotonic() + pause > until:
                return self._drop(len(batch))
            time.sleep(pause)
            wait = min(wait * 2, 10.0)

    def _post(self, body):
        """Status, the pause that the server asks for, and its answer; no status where it cannot be reached."""
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/x-ndjson"})
        try:
            with urllib.request.urlopen(request, timeout=self._timeout) as response:
                return response.status, None, _object(response.read())
        except urllib.error.HTTPError as error:
            asked = error.headers.get("Retry-After", "")
            return error.code, float(asked) if asked.isdigit() else None, _object(error.read())
        except OSError:
            return None, None, {}

    def _count(self, answer):
        self.accepted += answer.get("accepted", 0)
        self.duplicates += answer.get("duplicates", 0)
        for member in answer["rejected"]:
            self.rejected[f"{member.get('field', '')}: {member.get('reason', '')}"] += 1


def _object(text):
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}
