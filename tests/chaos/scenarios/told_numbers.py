"""Two workers, one of them killed again and again under load: what the living tell at /metrics is what the tables say."""
import subprocess
import time
import urllib.error

from chaos.load import PacedPayments
from chaos.metrics import of_type, scrape, value
from chaos.processes import free_ports, wait_until
from chaos.scenario import TOTAL_PAYMENTS, main


def answers(port):
    try:
        scrape(port)
        return True
    except (urllib.error.URLError, ConnectionError):
        return False


def counted(s, worker):
    """What the settles of the worker's present life have written: succeeded, failed, attempts that failed."""
    life = s.db.value("SELECT i.id FROM millrace_incarnations i JOIN millrace_beats b ON b.id = i.id "
                      "WHERE i.worker = %s AND i.dead = 0 ORDER BY i.started_at DESC LIMIT 1", (worker,))
    row = s.db.rows("SELECT COALESCE(SUM(succeeded), 0), COALESCE(SUM(failed), 0), COALESCE(SUM(attempts_failed), 0) "
                    "FROM millrace_counters WHERE incarnation = %s OR incarnation LIKE CONCAT(%s, '+%%')",
                    (life, life))[0]
    return tuple(int(number) for number in row)


def told(series):
    outcomes = {outcome: sum(number for (name, labels), number in series.items()
                             if name == "millrace_tasks_settled_total" and ("outcome", outcome) in labels)
                for outcome in ("succeeded", "failed", "retried", "held")}
    return (int(outcomes["succeeded"]), int(outcomes["failed"]), int(outcomes["failed"] + outcomes["retried"] + outcomes["held"]))


def run(s):
    engine = {"lease": "3s"}
    job = {"uses": "fail", "retry": {"delays": ["200ms"], "max_failures": 2}}
    s.start_mariadb()
    s.apply_schema()
    ports = dict(zip(("w1", "w2"), free_ports(2)))

    def start(worker):
        process = s.start_worker(worker, engine=engine, handlers={"job": job},
                                 arguments=("--http", f"127.0.0.1:{ports[worker]}"))
        wait_until(f"{worker} answers", lambda: answers(ports[worker]), 20)
        return process

    load = PacedPayments(s.db, seconds=s.size(15, 45))
    failing = s.size(40, 400)
    s.insert("job", {"ms": 1, "while": str(s.path("")), "why": "always"}, failing)
    start("w2")
    worker = start("w1")
    kills = s.size(3, 10)
    for _ in range(kills):
        before = s.done()
        wait_until("tasks are done", lambda: s.done() > before, 30)
        time.sleep(0.5)
        worker.kill()
        worker = start("w1")
    load.finish()
    s.wait_all_ended(60)
    s.check(f"{kills} kills: every payment made, every other task failed", f"{s.done()} and {s.failed()}",
            (s.done(), s.failed()) == (TOTAL_PAYMENTS, failing))

    for name, port in ports.items():
        series, text = scrape(port)
        s.check(f"{name} tells what its settles have written (succeeded, failed, attempts that failed)",
                f"{told(series)} told, {counted(s, name)} written", told(series) == counted(s, name))
        ran = of_type(series, "millrace_task_run_seconds_count")
        ended = of_type(series, "millrace_tasks_settled_total")
        s.check(f"{name}: nothing ran that was not settled", f"{ran:.0f} ran, {ended:.0f} settled", 0 < ran <= ended)
        promtool = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False)
        s.check(f"promtool takes what {name} tells", promtool.stdout + promtool.stderr, promtool.returncode == 0)
    wait_until("the failed pool is told", lambda: value(scrape(ports["w2"])[0], "millrace_tasks_failed", 0,
                                                        shard="main", handler="job") == failing, 60)

    def marked():
        return value(scrape(ports["w2"])[0], "millrace_incarnations_marked_dead_total")

    before, dead = marked(), s.dead()
    worker.kill()
    wait_until("the dead one that has no successor is marked", lambda: s.dead() > dead, 20)
    wait_until("w2 tells that it has marked one", lambda: marked() > before, 5)
    s.check("the dead that w2 has marked are as many as in the table", f"{marked() - before:.0f} of {s.dead() - dead}",
            marked() - before == s.dead() - dead == 1)


if __name__ == "__main__":
    main(run)
