"""A private ZooKeeper ensemble: its own folder, free ports on the loopback address, ticks short enough for sessions of
2 s and more."""
import logging
import os
import socket

from kazoo.client import KazooClient

from chaos.processes import Process, free_ports, wait_until

CLASSES = "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-log4j12.jar:/usr/share/java/log4j-1.2.jar"
LOGGING = """log4j.rootLogger=WARN, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{ISO8601} %-5p %c{1}: %m%n
"""
logging.getLogger("kazoo").addHandler(logging.NullHandler())  # servers that are killed on purpose are no news


class Server:
    """One member of an ensemble. start() after kill() keeps ports and data."""

    def __init__(self, number, folder, ports):
        self.number = number
        self.port, self.peer_port, self.election_port = ports
        self._folder = folder
        self._config = os.path.join(folder, "zoo.cfg")
        self.process = None

    def configure(self, members):
        os.makedirs(os.path.join(self._folder, "data"))
        peers = [f"server.{m.number}=127.0.0.1:{m.peer_port}:{m.election_port}" for m in members if len(members) > 1]
        lines = ["tickTime=500", "initLimit=20", "syncLimit=10", f"dataDir={self._folder}/data",
                 f"clientPort={self.port}", "clientPortAddress=127.0.0.1", "admin.enableServer=false",
                 "4lw.commands.whitelist=srvr", *peers]
        for name, text in (("zoo.cfg", "\n".join(lines) + "\n"), ("data/myid", f"{self.number}\n"),
                           ("log4j.properties", LOGGING)):
            with open(os.path.join(self._folder, name), "w") as file:
                file.write(text)

    def start(self):
        self.process = Process(f"zookeeper {self.number}", [
            "java", "-Xmx96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{self._folder}:{CLASSES}",
            "org.apache.zookeeper.server.quorum.QuorumPeerMain", self._config], os.path.join(self._folder, "log"))

    def kill(self):
        self.process.kill()

    def mode(self):
        """`leader`, `follower` or `standalone`; empty while it does not serve."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.settimeout(1)
                connection.sendall(b"srvr")
                answer = connection.makefile(errors="replace").read()
        except OSError:
            return ""
        return next((line[6:] for line in answer.splitlines() if line.startswith("Mode: ")), "")


class Ensemble:
    """One or three servers. They run until stop(); each may be killed, paused, resumed and started by itself."""

    def __init__(self, folder, servers=1):
        ports = free_ports(3 * servers)
        self.servers = [Server(i + 1, os.path.join(folder, str(i + 1)), ports[3 * i:3 * i + 3])
                        for i in range(servers)]
        for server in self.servers:
            server.configure(self.servers)
        self.start()
        self.wait_serving()

    @property
    def address(self):
        return ",".join(f"127.0.0.1:{server.port}" for server in self.servers)

    def start(self):
        """Starts those that do not run, and does not wait for them."""
        for server in self.servers:
            if server.process is None or not server.process.runs():
                server.start()

    def wait_serving(self, seconds=60):
        for server in self.servers:
            wait_until(f"ZooKeeper {server.number} serves, see its log:\n{server.process.output()[-2000:]}",
                       server.mode, seconds)

    def stop(self):
        for server in self.servers:
            server.kill()

    def leader(self):
        return next(server for server in self.servers if server.mode() in ("leader", "standalone"))

    def client(self, timeout=10.0):
        """A client to look with, connected; it finds its way back to a server by itself."""
        client = KazooClient(hosts=self.address, timeout=timeout, connection_retry={"max_tries": -1, "max_delay": 1},
                             command_retry={"max_tries": -1, "max_delay": 1})
        client.start(timeout=30)
        return client
