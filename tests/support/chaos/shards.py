"""Databases as `config/shards` names them, and what their tasks did."""
import json

EFFECTS = "CREATE TABLE effects (n BIGINT, KEY (n))"


class Shard:
    """One database of a MariaDb server."""

    def __init__(self, name, server):
        self.name = name
        self.server = server

    def config(self, **more):
        return {"url": self.server.url_of(self.name), "password_file": self.server.password_file, **more}

    def connect(self):
        return self.server.connect(database=self.name)

    def rows(self, sql, values=None):
        return self.server.rows(sql, values, self.name)

    def value(self, sql, values=None):
        return self.rows(sql, values)[0][0]

    def record_transitions(self, s, tables=None):
        """Of these tables, or of all that are there now."""
        s.record_transitions(self.server, self.name, tables)

    def finished(self, table="tasks_done"):
        """When each task was finished, as time.time()."""
        return [float(at) for at, in self.rows(f"SELECT UNIX_TIMESTAMP(finished_at) FROM {table}")]

    def unfinished(self, table="tasks"):
        return self.value(f"SELECT COUNT(*) FROM {table}")


def effect(number, milliseconds):
    """Parameters for the handler `sql`: one row in `effects`, in the task's own transaction."""
    return {"sql": [f"INSERT INTO effects (n) VALUES ({number})"], "ms": milliseconds}


def configure(s, shards, **more):
    """Sets config/shards; `more` are further keys of shards by name."""
    s.millrace("config", "set", "shards",
               json.dumps({shard.name: shard.config(**more.get(shard.name, {})) for shard in shards}))


def wrong_effects(shard, sent):
    """(numbers of `sent` without an effect, numbers with more than one)."""
    seen = dict(shard.rows("SELECT n, COUNT(*) FROM effects GROUP BY n"))
    return sum(number not in seen for number in sent), sum(count > 1 for count in seen.values())
