"""Three workers with nothing to do, 1,024 slices in 16 tables between them: what they cost themselves and the server."""
import os
import time

from chaos.processes import wait_until
from chaos.scenario import main

POLLS_PER_SECOND = 1 / (0.2 * 0.9)  # a little more often than the bound
WORKERS = ("w1", "w2", "w3")
ASKED = "FROM mysql.general_log WHERE command_type IN ('Query', 'Execute') AND user_host LIKE %s"
TABLES = [f"tasks_{number:03}" for number in range(16)]


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counted(s, worker_id, text):
    """How often a worker, which is known by its user, asked this."""
    return s.db.value(f"SELECT COUNT(*) {ASKED} AND argument LIKE %s", (f"{worker_id}%", f"%{text}%"))


def run(s):
    seconds = s.size(5, 20)
    s.start_mariadb()
    s.start_zookeeper()
    s.millrace("schema", "apply", "--tables", len(TABLES), "--slices", 64)
    s.record_transitions()
    processes = {}
    for worker_id in WORKERS:
        processes[worker_id] = s.start_worker(worker_id, arguments=["--session-timeout", "3s"])
    shares = (341, 341, 342)
    wait_until("the slices are shared", lambda: sorted(
        worker["slices"] for worker in s.cluster_status()["workers"].values()) == sorted(shares), 30, 0.2)
    time.sleep(2)  # all is known, and quiet

    logged = time.monotonic()
    s.db.client("TRUNCATE mysql.general_log; SET GLOBAL log_output = 'TABLE'; SET GLOBAL general_log = ON;")
    before, began = {w: cpu_seconds(p.pid) for w, p in processes.items()}, time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - began
    used = {w: 100 * (cpu_seconds(p.pid) - before[w]) / took for w, p in processes.items()}
    s.db.client("SET GLOBAL general_log = OFF;")
    logged = time.monotonic() - logged  # the log was on for no longer: to switch it takes a program of its own

    s.check("an idle worker takes less than 2 % of a core, the leader too",
            ", ".join(f"{w} {part:.2f} %" for w, part in used.items()), max(used.values()) < 2)
    asked = {w: [counted(s, w, f"FROM {table} ") for table in TABLES] for w in WORKERS}
    polls = logged * POLLS_PER_SECOND + 2
    leader = s.cluster_status()["leader"]
    # The tables' ends, for rows beyond their slices: the leader looks there every six seconds, each every ten.
    most = {w: polls + logged / 10 + 1 + (logged / 5 + 1 if w == leader else 0) for w in WORKERS}
    s.check(f"each worker asks each of its tables once a poll ({polls:.0f} times, and for its end every 10 s; the leader "
            f"{most[leader]:.0f}), "
            "however many slices", ", ".join(f"{w} {min(times)} to {max(times)} times" for w, times in asked.items()),
            all(0 < max(times) <= most[w] for w, times in asked.items()))
    # Whoever may lead tries every ten seconds whether it could, by a connection of its own: some ten statements.
    most = 12 + 10 * (logged // 10 + 1) / logged
    total = {w: counted(s, w, "") / logged for w in WORKERS}
    # What the leader alone asks of the catalog: two questions every two seconds, two every six, which the five seconds
    # of the short form may miss.
    catalog = {text: counted(s, leader, text) for text in (
        "FROM millrace_schema ORDER", "FROM millrace_batches", "FROM millrace_fan_outs", "SELECT what,actor,since FROM")}
    s.check("the leader asks for tables and batches every two seconds, and for fan-outs and pauses every six",
            ", ".join(f"{text} {times} times in {logged:.1f} s" for text, times in catalog.items()),
            all((at >= 2 and not s.full or times > 0) and times <= logged / (2 if at < 2 else 5) + 2
                for at, times in enumerate(catalog.values())))
    s.check(f"and little else: under 12 statements a second each, and those of a try to lead, {most:.1f} in all",
            ", ".join(f"{w} {rate:.1f}" for w, rate in total.items()), max(total.values()) < most)


if __name__ == "__main__":
    main(run)
