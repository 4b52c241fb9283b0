"""A server on loopback that sends one event at a time, each only after the client has handled the one before."""

import http.server
import threading

from tests.scripted import DONE, chat, event

PIECES = [
    b": keep-alive\n\n" + chat(role="assistant", content=""),
    chat(content="a"),
    chat(content="b"),
    event({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}),
    DONE,
]
_PATIENCE = 20


class Server(http.server.ThreadingHTTPServer):
    """`handled` is released by the client for every event; `headers_seen` are those of the last request."""

    daemon_threads = True

    def __init__(self, chunked):
        super().__init__(("127.0.0.1", 0), _Handler)
        self.chunked = chunked
        self.handled = threading.Semaphore(0)
        self.headers_seen = {}
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1/chat/completions"

    def __exit__(self, *_error):
        self.shutdown()
        self._thread.join()
        self.server_close()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.headers_seen = {name.lower(): value for name, value in self.headers.items()}
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header(*(("Transfer-Encoding", "chunked") if self.server.chunked else ("Connection", "close")))
        self.end_headers()
        for at, piece in enumerate(PIECES):
            # A client that waits for more bytes than there are never comes here, and finds the stream cut.
            if at and not self.server.handled.acquire(timeout=_PATIENCE):
                self.close_connection = True
                return
            self._write(piece)
        if self.server.chunked:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = not self.server.chunked

    def _write(self, piece):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if self.server.chunked else piece)
        self.wfile.flush()

    def log_message(self, *_parts):
        pass
