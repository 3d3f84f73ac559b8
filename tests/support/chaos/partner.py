"""Whom a handler calls: a server that answers all calls well or all of them badly, and notes each.

    partner = Partner()
    partner.works = False
    partner.calls_in(began, ended)
"""
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Partner:
    def __init__(self):
        self.works = True
        self._calls = []  # when, and whether it was answered well
        partner = self

        class Answer(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers.get("Content-Length", 0)))
                works = partner.works
                partner._calls.append((time.monotonic(), works))
                self.send_response(200 if works else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"

    def calls_in(self, began, ended):
        """How many came between the two times (monotonic)."""
        return sum(began <= at < ended for at, _ in list(self._calls))

    def refused(self):
        """How many were answered badly so far."""
        return sum(not works for _, works in list(self._calls))

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
