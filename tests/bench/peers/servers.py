"""The servers of the peers: private ones on the loopback address, with a folder and a password of their own, and with
durable commits. Each is a `with`: what was started is stopped, and its folder removed."""
import os
import pathlib
import pwd
import secrets
import shutil
import subprocess
import tempfile

from chaos.processes import Process, free_port, wait_until

SUPERUSER = "postgres"


def _as_postgres(folder):
    """PostgreSQL refuses to run as root: the words that a command of its own begins with there. It dies with this
    process, as all others do."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam(SUPERUSER)
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups", "--pdeathsig=KILL", "--"]


class Postgres:
    about = "shared_buffers=1GB, max_wal_size=4GB, fsync and synchronous_commit on"

    def __enter__(self):
        binaries = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
        self.folder = tempfile.mkdtemp(prefix="millrace-peer-")
        password = secrets.token_hex(12)
        self.port = free_port()
        self.url = f"postgres://{SUPERUSER}:{password}@127.0.0.1:{self.port}/postgres"
        first = _as_postgres(self.folder)
        password_file = os.path.join(self.folder, "password")
        data = os.path.join(self.folder, "data")
        with open(os.open(password_file, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(password + "\n")
        shutil.chown(password_file, SUPERUSER) if first else None
        subprocess.run([*first, binaries / "initdb", "-D", data, "-U", SUPERUSER, "--auth=scram-sha-256",
                        f"--pwfile={password_file}", "-E", "UTF8"], check=True, stdout=subprocess.DEVNULL, cwd="/")
        self.process = Process("postgres", [
            *first, binaries / "postgres", "-D", data, "-p", self.port, "-c", "listen_addresses=127.0.0.1", "-c",
            f"unix_socket_directories={self.folder}", "-c", "shared_buffers=1GB", "-c", "max_wal_size=4GB", "-c", "fsync=on",
            "-c", "synchronous_commit=on"], os.path.join(self.folder, "log"))
        wait_until("PostgreSQL answers", lambda: subprocess.run(
            [binaries / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)]).returncode == 0, 60, 0.1)
        self._psql = binaries / "psql"
        return self

    def rest(self):
        """What a fill has left to do is done before anything is measured."""
        subprocess.run([self._psql, "-q", self.url, "-c", "VACUUM ANALYZE", "-c", "CHECKPOINT"], check=True)

    def __exit__(self, *_):
        self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class Redis:
    about = "appendonly, appendfsync always"
    durability = "appendonly yes\nappendfsync always\n"

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="millrace-peer-")
        self.port = free_port()
        password = secrets.token_hex(12)
        self.url = f"redis://:{password}@127.0.0.1:{self.port}"
        configuration = os.path.join(self.folder, "redis.conf")
        with open(os.open(configuration, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write(f"bind 127.0.0.1\nport {self.port}\ndir {self.folder}\nrequirepass {password}\nsave \"\"\n"
                       f"{self.durability}maxmemory-policy noeviction\n")
        log = os.path.join(self.folder, "log")
        self.process = Process("redis", ["redis-server", configuration], log)
        wait_until("Redis answers", lambda: "Ready to accept connections" in self.process.output(), 30, 0.05)
        return self

    def rest(self):
        pass

    def __exit__(self, *_):
        self.process.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


class ForgetfulRedis(Redis):
    """As it is often run: what was added is gone with the server."""
    about = "nothing is written to the disk"
    durability = ""
