import http.server
import json
import os
import tempfile
import threading
import unittest
import warnings

import tracejoin_client as tracejoin


class Door(http.server.ThreadingHTTPServer):
    """A records door that answers from a script, the last answer again and again."""

    daemon_threads = True

    def __init__(self, *answers):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.bodies = []
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def __exit__(self, *_error):
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.bodies.append((self.path, self.headers["Content-Type"], body.decode().split("\n")))
        status, answer = self.server.answers[0]
        if len(self.server.answers) > 1:
            self.server.answers.pop(0)
        self.send_response(status)
        self.send_header("Retry-After", "0")
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *_parts):
        pass


def taken(accepted, duplicates=0, rejected=()):
    return 200, {"accepted": accepted, "duplicates": duplicates, "rejected": list(rejected)}


class Sinks(unittest.TestCase):
    def test_a_file_holds_one_record_a_line(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "records.ndjson")
            for record in ({"a": 1}, {"b": "two\nlines"}):
                with tracejoin.File(path) as sink:
                    sink.add(record)
            with open(path, encoding="utf-8") as written:
                self.assertEqual([json.loads(line) for line in written], [{"a": 1}, {"b": "two\nlines"}])

    def test_batches_reach_the_door_whole(self):
        with Door(taken(2), taken(1)) as door:
            with tracejoin.Server(door.url, batch=2, every=60) as sink:
                for number in range(3):
                    sink.add({"n": number})
            self.assertEqual(sink.accepted, 3)
        sent = [json.loads(line) for _, _, lines in door.bodies for line in lines]
        self.assertEqual(sent, [{"n": 0}, {"n": 1}, {"n": 2}])
        self.assertEqual({(path, form) for path, form, _ in door.bodies}, {("/api/v1/records", "application/x-ndjson")})

    def test_a_busy_server_is_asked_again(self):
        with Door((503, {}), (429, {}), taken(0, duplicates=1)) as door:
            with tracejoin.Server(door.url) as sink:
                sink.add({})
        self.assertEqual((len(door.bodies), sink.duplicates, sink.dropped), (3, 1, 0))

    def test_what_is_not_taken_is_counted_and_said(self):
        refused = [{"index": 0, "field": "duration_ms", "reason": "is missing"}]
        with Door((400, taken(0, rejected=refused)[1])) as door, warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            with tracejoin.Server(door.url) as sink:
                sink.add({})
        self.assertEqual(sink.rejected, {"duration_ms: is missing": 1})
        self.assertIn("duration_ms: is missing", str(said[0].message))

    def test_a_server_that_stays_away_costs_records_not_requests(self):
        with Door(taken(0)) as door:
            url = door.url
        with self.assertWarnsRegex(UserWarning, "1 records dropped"):
            with tracejoin.Server(url, retry_for=0) as sink:
                sink.add({})
        self.assertEqual(sink.dropped, 1)

    def test_refusals_that_would_come_again_are_not_tried_again(self):
        with Door((413, {})) as door, self.assertWarns(UserWarning):
            with tracejoin.Server(door.url) as sink:
                sink.add({})
        self.assertEqual((len(door.bodies), sink.dropped), (1, 1))


if __name__ == "__main__":
    unittest.main()
