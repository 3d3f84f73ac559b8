"""A primary and its replica behind one address, and the replica in the primary's place, without its last commits."""
from chaos.tcp_proxy import TcpProxy

OPTIONS = ["--log-bin=log", "--binlog-format=ROW", "--log-bin-trust-function-creators=1"]


class ReplicatedPair:
    """The primary is the scenario's database, until the replica takes its place. Both know the same users."""

    def __init__(self, scenario):
        self._s = scenario
        primary = scenario.db = scenario.start_server("primary", [*OPTIONS, "--server-id=1"])
        self.replica = scenario.start_server("replica", [*OPTIONS, "--server-id=2"], password=primary.password)
        self.replica.client(
            f"SET GLOBAL gtid_slave_pos = '{primary.value('SELECT @@gtid_binlog_pos')}'; "
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='tester', "
            f"MASTER_PASSWORD='{primary.password}', MASTER_USE_GTID=slave_pos; START SLAVE;")
        self._proxy = TcpProxy(primary.port)
        scenario.port = self._proxy.port

    def cut(self):
        """From now on the replica hears of nothing."""
        self.replica.client("STOP SLAVE")

    def promote(self):
        """The primary is dead; the replica answers in its place."""
        self.replica.client("RESET SLAVE ALL")
        self._s.db = self.replica
        self._proxy.switch(self.replica.port)
