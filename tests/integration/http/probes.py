"""What probes and people get of a real process: the three pages, `millrace health`, tokens, TLS, and what is refused at
the start."""
import hashlib
import http.client
import json
import os
import pathlib
import socket
import sqlite3
import ssl
import subprocess
import sys
import tempfile

from chaos.processes import Process, free_port, wait_until

BINARY = pathlib.Path(os.environ["MILLRACE_BINARY_DIR"])
failures = []


def check(asked, measured, holds):
    print(f"{'ok    ' if holds else 'FAILED'}  {asked}: {measured}", flush=True)
    if not holds:
        failures.append(asked)


def ended(asked, arguments, code, said):
    """A command of the program that ends by itself, and what it says."""
    done = subprocess.run([BINARY / "millrace", *map(str, arguments)], capture_output=True, text=True, timeout=30)
    told = done.stdout + done.stderr
    check(asked, (done.returncode, told.strip()[-160:]), done.returncode == code and said in told)


class Folder:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.lives = 0

    def write(self, name, text, mode=0o600):
        file = self.path / name
        file.write_text(text)
        file.chmod(mode)
        return file

    def command(self, *arguments):
        self.lives += 1
        return ["run", "--store", f"sqlite:{self.path}/{self.lives}.db", "--state-dir", self.path / "state", "--plugins",
                BINARY / "plugins", *arguments]

    def start(self, *arguments):
        process = Process("run", [BINARY / "millrace", *self.command(*arguments)], self.path / f"log{self.lives}")
        wait_until("it says where it listens", lambda: "listening on " in process.output(), 20)
        line = next(line for line in process.output().splitlines() if line.startswith("listening on "))
        return process, int(line.rsplit(":", 1)[1])


def get(port, path, headers=None, method="GET", context=None):
    connection = (http.client.HTTPSConnection("127.0.0.1", port, timeout=5, context=context) if context
                  else http.client.HTTPConnection("127.0.0.1", port, timeout=5))
    try:
        connection.request(method, path, headers=headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read().decode(), reply
    finally:
        connection.close()


def ends(process):
    code = process.terminate()
    check("SIGTERM ends it in good order", code, code == 0)


def refuses(port):
    try:
        return "\nmillrace_config_refused 1\n" in get(port, "/metrics")[1]
    except (OSError, http.client.HTTPException):  # it listens anew
        return False


def pages(folder):
    process, port = folder.start("--http", ":0")
    wait_until("it is ready", lambda: get(port, "/readyz")[0] == 200, 20)
    status, text, reply = get(port, "/metrics")
    check("/metrics are Prometheus's text", (status, reply.getheader("Content-Type"), text.splitlines()[:1]),
          status == 200 and "version=0.0.4" in reply.getheader("Content-Type") and "millrace_" in text)
    for asked, path, method, headers, wanted in (
            ("an unknown path", "/secrets", "GET", {}, 404), ("a wrong method", "/metrics", "POST", {}, 405),
            ("HEAD", "/metrics", "HEAD", {}, 200), ("a foreign host", "/metrics", "GET", {"Host": "evil.example"}, 421)):
        status = get(port, path, headers, method)[0]
        check(f"{asked} is answered with {wanted}", status, status == wanted)
    ended("health is quiet where all is well", ["health", "--http", f":{port}"], 0, "")
    ended("so is health --ready", ["health", "--ready", "--http", f"localhost:{port}"], 0, "")
    ended("an address in use is refused", folder.command("--http", f":{port}"), 4, "another process listens on")
    ends(process)
    ended("nobody answers", ["health", "--http", f":{port}"], 3, "nobody answers on")


def not_ready(folder):
    database = folder.path / f"{folder.lives + 1}.db"
    subprocess.run([BINARY / "millrace", "submit", "--store", f"sqlite:{database}", "--handler", "noop"], check=True,
                   capture_output=True, timeout=30)
    locked = sqlite3.connect(database, isolation_level=None, timeout=10)
    locked.execute("BEGIN IMMEDIATE")
    process, port = folder.start("--http", ":0")
    status, text, _ = get(port, "/readyz")
    check("it is not ready without its store, and says so", (status, text), status == 503 and "not ready" in text)
    ended("health --ready says why not", ["health", "--ready", "--http", f":{port}"], 1, "not ready")
    ended("and it is well meanwhile", ["health", "--http", f":{port}"], 0, "")
    locked.execute("ROLLBACK")
    locked.close()
    wait_until("it is ready with its store", lambda: get(port, "/readyz")[0] == 200, 30)
    ends(process)


def from_the_file(folder):
    port = free_port()
    good = json.dumps({"engine": {"http": f":{port}"}})
    config = folder.write("m.json", good)
    process, at = folder.start("--config", config)
    check("engine.http says where", at, at == port)
    ended("health asks where the file says", ["health", "--config", config], 0, "")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        folder.write("m.json", good.replace(str(port), str(taken.getsockname()[1])))
        wait_until("the metrics tell of an address that is taken", lambda: refuses(port), 20)
    folder.write("m.json", good)
    ends(process)
    process, at = folder.start("--config", config, "--http", ":0")
    check("the flag goes before the file", at, at != port)
    ends(process)


def refused_file(folder):
    good = json.dumps({"engine": {"batch": 100}})
    config = folder.write("m.json", good)
    process, port = folder.start("--config", config, "--http", ":0")
    wait_until("it is ready", lambda: get(port, "/readyz")[0] == 200, 20)
    check("a file that is in force is not refused", refuses(port), not refuses(port))
    folder.write("m.json", good.replace("batch", "bach"))
    wait_until("the metrics tell of a file that can't be used", lambda: refuses(port), 20)
    folder.write("m.json", good)
    wait_until("and of its being mended", lambda: not refuses(port), 20)
    ends(process)


def tokens(folder):
    line = f"view prometheus {hashlib.sha256(b'secret').hexdigest()}\n"
    good = folder.write("tokens", "# ours\n" + line)
    process, port = folder.start("--http", "0.0.0.0:0", "--tokens", good)
    wait_until("it is ready", lambda: get(port, "/readyz")[0] == 200, 20)
    anybody, viewer = get(port, "/metrics")[0], get(port, "/metrics", {"Authorization": "Bearer secret"})[0]
    check("metrics ask for a token, probes for none", (anybody, viewer, get(port, "/healthz")[0]),
          (anybody, viewer, get(port, "/healthz")[0]) == (401, 200, 200))
    check("tokens in clear are warned of", "pass in clear" in process.output(), "pass in clear" in process.output())
    ends(process)
    ended("other machines are not answered without tokens", folder.command("--http", "0.0.0.0:0"), 2, "give --tokens FILE")
    ended("tokens that others can read", folder.command("--http", ":0", "--tokens", folder.write("open", line, 0o644)), 2,
          "can be read by others")
    ended("a bad line", folder.command("--http", ":0", "--tokens", folder.write("bad", line + "boss x 12\n")), 2,
          "bad:2: 'boss' is no role")
    ended("no address at all", folder.command("--http", "nonsense"), 2, "write host:port")


def tls(folder):
    key, certificate = folder.path / "key.pem", folder.path / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days",
                    "2", "-subj", "/CN=millrace-test", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out",
                    certificate], check=True, capture_output=True)
    key.chmod(0o600)
    process, port = folder.start("--http", ":0", "--tls-cert", certificate, "--tls-key", key)
    status = get(port, "/healthz", context=ssl.create_default_context(cafile=certificate))[0]
    check("it answers by TLS", status, status == 200)
    ended("health trusts the authorities that it is given", ["health", "--http", f":{port}", "--tls-ca", certificate], 0, "")
    ended("health in clear is no answer", ["health", "--http", f":{port}"], 3, "nobody answers on")
    old = ssl.create_default_context(cafile=certificate)
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    try:
        get(port, "/healthz", context=old)
        said = "an answer"
    except (ssl.SSLError, OSError) as error:
        said = type(error).__name__
    check("TLS before 1.2 is refused", said, said != "an answer")
    ends(process)
    key.chmod(0o644)
    ended("a key that others can read", folder.command("--http", ":0", "--tls-cert", certificate, "--tls-key", key), 2,
          "can be read by others")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        for part in (pages, not_ready, from_the_file, refused_file, tokens, tls):
            part(Folder(tempfile.mkdtemp(dir=temporary)))
    sys.exit(1 if failures else 0)
