"""A primary and its replica behind one address, and the replica in the primary's place, without its last commits."""
from chaos.tcp_proxy import TcpProxy

# What one of the two kinds of servers does not know is loose.
OPTIONS = ["--log-bin=log", "--binlog-format=ROW", "--log-bin-trust-function-creators=1", "--loose-gtid-mode=ON",
           "--loose-enforce-gtid-consistency=ON"]
OF_MARIADB = {
    "done": "SELECT @@gtid_binlog_pos",
    "follow": "SET GLOBAL gtid_slave_pos = '{done}'; CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={port}, "
              "MASTER_USER='tester', MASTER_PASSWORD='{password}', MASTER_USE_GTID=slave_pos; START SLAVE;",
    "cut": "STOP SLAVE", "forget": "RESET SLAVE ALL"}
OF_MYSQL = {
    "done": "SELECT @@GLOBAL.gtid_executed",
    "follow": "RESET BINARY LOGS AND GTIDS; SET GLOBAL gtid_purged = '{done}'; CHANGE REPLICATION SOURCE TO "
              "SOURCE_HOST='127.0.0.1', SOURCE_PORT={port}, SOURCE_USER='tester', SOURCE_PASSWORD='{password}', "
              "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1; START REPLICA;",
    "cut": "STOP REPLICA", "forget": "RESET REPLICA ALL"}


class ReplicatedPair:
    """The primary is the scenario's database, until the replica takes its place. Both know the same users."""

    def __init__(self, scenario):
        self._s = scenario
        primary = scenario.db = scenario.start_server("primary", [*OPTIONS, "--server-id=1"])
        self.replica = scenario.start_server("replica", [*OPTIONS, "--server-id=2"], password=primary.password)
        self._words = OF_MARIADB if primary.is_mariadb else OF_MYSQL
        self.replica.client(self._words["follow"].format(
            done=primary.value(self._words["done"]), port=primary.port, password=primary.password))
        self._proxy = TcpProxy(primary.port)
        scenario.port = self._proxy.port

    def cut(self):
        """From now on the replica hears of nothing."""
        self.replica.client(self._words["cut"])

    def promote(self):
        """The primary is dead; the replica answers in its place."""
        self.replica.client(self._words["forget"])
        self._s.db = self.replica
        self._proxy.switch(self.replica.port)
