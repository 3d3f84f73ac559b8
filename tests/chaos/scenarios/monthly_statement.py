"""The monthly statement: one schedule fans out over all active customers, and two leaders are killed meanwhile. There is
one task for each customer and month; another firing in the same month adds none, and one in the next month one each."""
import datetime
import json
import zoneinfo

from chaos.cluster import Cluster
from chaos.mariadb import numbers
from chaos.processes import wait_until
from chaos.scenario import main

CANDIDATES = ("c1", "c2", "c3")
ZONE = "Europe/Berlin"
PAGE = 999
CUSTOMERS = ("CREATE TABLE customers (id BIGINT PRIMARY KEY, name VARCHAR(40) NOT NULL, active TINYINT NOT NULL);"
             "INSERT INTO customers SELECT seq, CONCAT('customer ', seq), seq % 11 <> 0 FROM {};")


def under_way(s):
    """How many tasks each fan-out has submitted so far; empty: all have come to their end."""
    return [row[0] for row in s.db.rows("SELECT submitted FROM millrace_fan_outs")]


def ended(s):
    return [row[0] for row in s.db.rows("SELECT detail FROM millrace_audit WHERE action='fan_out_ended' ORDER BY id")]


def kill_leader_while_it_fans_out(s, cluster, at_least):
    """Once so many tasks are in; returns how many were when the leader was killed, None where it was too late."""
    leader = wait_until("somebody leads", lambda: cluster.leader() if cluster.leader() in cluster.live() else None, 30, 0.02)
    wait_until(f"{at_least} tasks are in", lambda: max(under_way(s), default=10**9) >= at_least, 60, 0.005)
    cluster.worker(leader).kill()
    seen = under_way(s)
    cluster.start_coordinator(leader)
    return seen[0] if seen else None


def check_month(s, month, customers):
    tasks, keys = s.db.rows("SELECT COUNT(*), COUNT(DISTINCT biz_key) FROM tasks WHERE biz_key LIKE %s", (f"%-{month}",))[0]
    without = s.db.value("SELECT COUNT(*) FROM customers c WHERE active AND NOT EXISTS (SELECT 1 FROM tasks_keys k "
                         "WHERE k.handler='noop' AND k.biz_key=CONCAT(c.id, %s))", (f"-{month}",))
    others = s.db.value("SELECT COUNT(*) FROM tasks t JOIN customers c ON c.id=JSON_VALUE(t.params, '$.id') "
                        "WHERE biz_key LIKE %s AND NOT active", (f"%-{month}",))
    s.check(f"{month}: one task for each of {customers:,} active customers",
            f"{tasks:,} tasks of {keys:,} keys, {without} customers without, {others} of others",
            (tasks, keys, without, others) == (customers, customers, 0, 0))


def fire_again(s, firing):
    """As a schedule would; whoever leads carries it on."""
    before = len(ended(s))
    s.db.client("INSERT INTO millrace_fan_outs (schedule,firing,handler,task_table,from_query,key_template,zone,submitted,"
                f"refused) VALUES ('statement','{firing:%Y-%m-%d %H:%M:%S}','noop','tasks','SELECT id, name FROM customers "
                f"WHERE active = 1','{{id}}-{{month}}','{ZONE}',0,0)")
    wait_until("it has come to its end", lambda: len(ended(s)) > before, s.size(30, 200), 0.1)
    return ended(s)[-1]


def run(s):
    cluster = Cluster(s, slices=16)
    s.db.client(CUSTOMERS.format(numbers(s.size(5_500, 220_000))))
    customers = s.db.value("SELECT COUNT(*) FROM customers WHERE active")
    for name in CANDIDATES:
        cluster.start_coordinator(name)
    cluster.wait_leader()
    # In the short form each page takes a third of a second, so that a leader can be killed between two.
    slow = " AND SLEEP(0.0003) = 0" if not s.full else ""
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=3)
    s.millrace("config", "set", "schedules", json.dumps({"statement": {
        "at": at.isoformat(timespec="seconds"), "zone": ZONE, "handler": "noop", "key": "{id}-{month}",
        "from_query": f"SELECT id, name FROM customers WHERE active = 1{slow}"}}), "--yes")
    wait_until("the schedule has fired", lambda: under_way(s), 30, 0.005)
    kills = [kill_leader_while_it_fans_out(s, cluster, at_least) for at_least in (PAGE, s.size(3 * PAGE, 60 * PAGE))]
    s.check("two leaders were killed while it fanned out", f"with {kills} tasks in", None not in kills)
    wait_until("it has come to its end", lambda: not under_way(s), s.size(60, 300), 0.1)
    s.check("its counts are those of all leaders together", ended(s), ended(s) == [f"{customers} submitted, 0 refused"])
    month = f"{at.astimezone(zoneinfo.ZoneInfo(ZONE)):%Y-%m}"
    check_month(s, month, customers)
    local = at.astimezone(zoneinfo.ZoneInfo(ZONE)).replace(hour=12)
    again = fire_again(s, (local.replace(day=15)).astimezone(datetime.timezone.utc))
    s.check("another firing in that month adds none, and says why", again,
            again == f"0 submitted, 0 refused, {customers} taken already")
    check_month(s, month, customers)
    following = (local.replace(day=1) + datetime.timedelta(days=40)).replace(day=1)
    fire_again(s, following.astimezone(datetime.timezone.utc))
    check_month(s, f"{following:%Y-%m}", customers)
    s.check("and no other task", f"{s.unfinished():,}", s.unfinished() == 2 * customers)


if __name__ == "__main__":
    main(run)
