"""An HTTP server on a free port for http_call's tests. Prints its port, then one JSON line per request.

Usage: http_server.py [--certificate FILE --key FILE]    with these it speaks TLS alone
"""
import argparse
import http.server
import json
import ssl
import threading
import time

RETRY_AFTER = {"/429": "7", "/502": "0", "/504": "Thu, 05 Nov 2009 10:00:00 GMT"}
lines = threading.Lock()  # requests come at once, and each is a line by itself


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # so that connections are kept open

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = {"path": self.path, "headers": dict(self.headers), "body": body.decode(),
                   "connection": self.client_address[1]}
        with lines:
            print(json.dumps(request), flush=True)
        if self.path == "/slow":
            time.sleep(30)
        if self.path in ("/slow", "/hangup"):
            self.close_connection = True
            return
        self.send_response(int(self.path.strip("/")))
        if self.path in RETRY_AFTER:
            self.send_header("Retry-After", RETRY_AFTER[self.path])
        if self.path == "/302":
            self.send_header("Location", "/200")
        answer = b"hello\x00\xff" if self.path == "/201" else b"answer"
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        if self.path == "/203":  # closes its end without a word
            self.close_connection = True

    def log_message(self, *_):
        pass


parser = argparse.ArgumentParser()
parser.add_argument("--certificate")
parser.add_argument("--key")
arguments = parser.parse_args()
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
server.daemon_threads = True
if arguments.certificate:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(arguments.certificate, arguments.key)
    # Each handshake in its connection's own thread: one that is broken off ends that connection alone.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
