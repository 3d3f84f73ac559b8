"""Clients that dribble, flood, send too much or read too little, against the server of a real `millrace run`: it stays
bounded, and answers a probe in time all the while."""
import os
import pathlib
import resource
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time

from chaos.processes import Process, wait_until

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
MOST_CONNECTIONS = 256
OWN_FILES = 60  # of the process, beside its clients
MOST_GROWTH_MIB = int(sys.argv[1])
PROBE_LIMIT = 0.5
ASK = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
failures = []


def check(asked, measured, holds):
    print(f"{'ok    ' if holds else 'FAILED'}  {asked}: {measured}", flush=True)
    if not holds:
        failures.append(asked)


class Server:
    def __init__(self, folder):
        self.process = Process("run", [BINARY / "millrace", "run", "--store", f"sqlite:{folder}/tasks.db", "--state-dir",
                                       f"{folder}/state", "--plugins", BINARY / "plugins", "--http", ":0"],
                               f"{folder}/log")
        line = wait_until("the server says where it listens", self._address_line, 20)
        self.port = int(line.rsplit(":", 1)[1])

    def _address_line(self):
        lines = [line for line in self.process.output().splitlines() if line.startswith("listening on ")]
        return lines[0] if lines else None

    def connect(self, buffers=None):
        """`buffers`: bytes that the system keeps for the client, in each direction."""
        client = socket.socket()
        client.settimeout(5)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if buffers:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffers)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffers)
        client.connect(("127.0.0.1", self.port))
        return client

    def files(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def memory_mib(self):
        with open(f"/proc/{self.process.pid}/status") as status:
            return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS:"))


def read_all(client, limit=5):
    """What comes until the server closes; None if it does not within the limit."""
    client.settimeout(limit)
    data = b""
    try:
        while True:
            part = client.recv(65536)
            if not part:
                return data
            data += part
    except socket.timeout:
        return None
    except OSError:
        return data


def ask(server, text):
    with server.connect() as client:
        try:
            client.sendall(text)
        except OSError:
            pass
        return read_all(client)


class Probes:
    """Asks /healthz again and again; how long the slowest answer took, one that needed another try included."""

    def __init__(self, server):
        self.server, self.slowest, self.answers, self.retries = server, 0.0, 0, 0
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._ends.set()
        self._thread.join()

    def _run(self):
        over = False
        while not over:  # the last one begins after all that was done to the server
            over = self._ends.wait(0.02)
            began = time.monotonic()
            while not self._answered() and time.monotonic() - began < 10:
                self.retries += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.answers += 1

    def _answered(self):
        try:
            with self.server.connect() as client:
                client.sendall(ASK)
                return client.recv(64).startswith(b"HTTP/1.1 200")
        except OSError:
            return False


def held(server, what, clients):
    """The bounds, while these clients are connected."""
    files = server.files()
    check(f"{what}: connections are bounded", f"{len(clients)} clients, {files} files", files <= MOST_CONNECTIONS + OWN_FILES)
    for client in clients:
        client.close()


def silent(server):
    clients = [server.connect() for _ in range(2000)]
    held(server, "silent clients", clients)


def dribbling(server):
    clients = [server.connect() for _ in range(300)]
    for byte in ASK[:12]:
        for client in clients:
            try:
                client.send(bytes([byte]))
            except OSError:
                pass  # it had to make room
    held(server, "dribbling clients", clients)


def idle(server):
    clients = []
    for _ in range(600):
        client = server.connect()
        client.sendall(ASK)
        client.recv(4096)
        clients.append(client)
    held(server, "idle clients", clients)


def slow_readers(server):
    """As many requests at once as go out, and not one answer read."""
    clients = []
    for _ in range(300):
        client = server.connect(buffers=16_384)
        client.setblocking(False)
        request = ASK * 200
        try:
            while True:
                client.send(request)
        except OSError:
            pass  # neither side takes more
        clients.append(client)
    held(server, "slow readers", clients)


def refused(server):
    host = b"Host: localhost\r\n"
    corpus = [
        ("a long request line", b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n" + host + b"\r\n", b"431"),
        ("a long header", b"GET /healthz HTTP/1.1\r\n" + host + b"X: " + b"a" * 100_000 + b"\r\n\r\n", b"431"),
        ("many headers", b"GET /healthz HTTP/1.1\r\n" + host + b"X: a\r\n" * 20_000 + b"\r\n", b"431"),
        ("a long body", b"POST /healthz HTTP/1.1\r\n" + host + b"Content-Length: 100000000\r\n\r\n" + b"a" * 200_000, b"413"),
        ("a long chunk", b"POST /healthz HTTP/1.1\r\n" + host + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n" + b"a" * 200_000,
         b"413"),
        ("a negative length", b"POST /healthz HTTP/1.1\r\n" + host + b"Content-Length: -1\r\n\r\n", b"400"),
        ("two lengths", b"POST /healthz HTTP/1.1\r\n" + host + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", b"400"),
        ("a foreign host", b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", b"421"),
        ("a foreign host that looks near", b"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n", b"421"),
        ("no host", b"GET /metrics HTTP/1.1\r\n\r\n", b"400"),
        ("two hosts", b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", b"400"),
        ("another version", b"GET /healthz HTTP/9.9\r\n" + host + b"\r\n", b"400"),
        ("an absolute target", b"GET http://localhost/healthz HTTP/1.1\r\n" + host + b"\r\n", b"400"),
        ("zeroes", b"\0" * 1000 + b"\r\n\r\n", b"400"),
        ("a wrong method", b"DELETE /healthz HTTP/1.1\r\n" + host + b"\r\n", b"405"),
        ("a path out of the tree", b"GET /../../etc/passwd HTTP/1.1\r\n" + host + b"\r\n", b"404"),
    ]
    for what, text, status in corpus:
        # The last ones keep the connection: whoever says no more is closed after the answer.
        with server.connect() as client:
            try:
                client.sendall(text)
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            answer = read_all(client)
        first = None if answer is None else answer[:20]
        check(f"{what} is refused", first, answer is not None and answer.startswith(b"HTTP/1.1 " + status))


def half_closed(server):
    with server.connect() as client:
        client.sendall(ASK)
        client.shutdown(socket.SHUT_WR)
        answer = read_all(client)
    check("who says no more is answered", answer[:15], answer.startswith(b"HTTP/1.1 200"))


def tls_on_a_plain_port(server):
    context = ssl._create_unverified_context()
    try:
        with context.wrap_socket(server.connect()):
            said = "a handshake"
    except (ssl.SSLError, OSError) as error:
        said = type(error).__name__
    check("TLS on a plain port is no server", said, said != "a handshake")


def run(folder):
    server = Server(folder)
    ask(server, ASK + b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    before = server.memory_mib()
    for attack in (refused, half_closed, tls_on_a_plain_port, silent, dribbling, idle, slow_readers):
        with Probes(server) as probes:
            attack(server)
        check(f"{attack.__name__}: a probe is answered within {PROBE_LIMIT:g} s all the while",
              f"slowest of {probes.answers}: {probes.slowest * 1000:.0f} ms, {probes.retries} tries more",
              probes.answers > 0 and probes.slowest < PROBE_LIMIT)
    growth = server.memory_mib() - before
    check(f"memory grows by {MOST_GROWTH_MIB} MiB at most", f"{growth:.1f} MiB", growth < MOST_GROWTH_MIB)
    done = subprocess.run([BINARY / "millrace", "health", "--http", f":{server.port}"], capture_output=True, text=True)
    check("millrace health is quiet and content", (done.returncode, done.stdout + done.stderr),
          (done.returncode, done.stdout + done.stderr) == (0, ""))
    ended = server.process.terminate()
    check("it ends in good order", ended, ended == 0)


if __name__ == "__main__":
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 8192), most))
    with tempfile.TemporaryDirectory() as temporary:
        run(temporary)
    sys.exit(1 if failures else 0)
