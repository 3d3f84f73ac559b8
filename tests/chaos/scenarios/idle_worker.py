"""A worker that owns 1,024 slices in 16 tables and has nothing to do: what it costs itself and the server."""
import os
import time

from chaos.scenario import main

POLLS_PER_SECOND = 1 / (0.2 * 0.9)  # a little more often than the bound


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as stat:
        fields = stat.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(s):
    seconds = s.size(5, 20)
    s.start_mariadb()
    s.millrace("schema", "apply", "--tables", 16, "--slices", 64)
    s.record_transitions()
    worker = s.start_worker()
    time.sleep(2)  # registered, and its statistics of the tables read

    # What a worker asks, by the first words and the table that it is about.
    s.db.client("SET GLOBAL log_output = 'TABLE'; SET GLOBAL general_log = ON;")
    cpu, began = cpu_seconds(worker.pid), time.monotonic()
    time.sleep(seconds)
    cpu, took = cpu_seconds(worker.pid) - cpu, time.monotonic() - began
    s.db.client("SET GLOBAL general_log = OFF;")
    queries = s.db.value("SELECT COUNT(*) FROM mysql.general_log WHERE command_type IN ('Query', 'Execute') "
                         "AND argument LIKE '%%FROM tasks_0%%'")
    total = s.db.value("SELECT COUNT(*) FROM mysql.general_log WHERE command_type IN ('Query', 'Execute')")

    s.check("an idle worker of 1,024 slices in 16 tables takes less than 2 % of a core", f"{100 * cpu / took:.2f} %",
            cpu / took < 0.02)
    most = took * POLLS_PER_SECOND + 2
    s.check("it asks its tables once a poll, all of them in one query, however many slices",
            f"{queries} in {took:.1f} s", 0 < queries <= most)
    s.check("and little else", f"{total / took:.1f} statements a second in all", total / took < 10)


if __name__ == "__main__":
    main(run)
