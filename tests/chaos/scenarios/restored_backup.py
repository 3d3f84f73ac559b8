"""A backup that is made while tasks run, and restored after all are done: what ran at that moment is rescued and run again,
what was done since is done again, and effects that are in the same backup are exact."""
import os
import subprocess

from chaos.processes import wait_until
from chaos.scenario import main
from chaos.shards import EFFECTS, effect, wrong_effects

RUNNING = 8  # at any moment


def client(s, program, *arguments, **streams):
    subprocess.run([program, "--no-defaults", f"-h{s.db.host}", f"-P{s.db.port}", f"-u{s.db.user}", *arguments, s.db.database],
                   check=True, env={**os.environ, "MYSQL_PWD": s.db.password}, **streams)


def back_up(s, path):
    with open(path, "w") as file:
        client(s, "mariadb-dump", "--single-transaction", stdout=file)


def restore(s, path):
    s.db.client(f"DROP DATABASE {s.db.database}; CREATE DATABASE {s.db.database}")
    with open(path) as file:
        client(s, "mariadb", stdin=file)


def run(s):
    tasks = s.size(400, 4000)
    s.start_mariadb()
    s.apply_schema()
    s.db.client(EFFECTS)
    for n in range(tasks):
        s.insert("sql", effect(n, 50))
    settings = {"engine": {"lease": "3s"}, "handlers": {"sql": {"concurrency": RUNNING}}}
    worker = s.start_worker(**settings)
    wait_until("a quarter is done", lambda: s.done() > tasks / 4, 60)
    back_up(s, s.path("backup.sql"))
    wait_until("all are done", lambda: s.unfinished() == 0, 300)
    s.check("the worker stops in good order", code := worker.terminate(), code == 0)

    restore(s, s.path("backup.sql"))
    running, done, effects = s.running(), s.done(), s.db.value("SELECT COUNT(*) FROM effects")
    waiting = s.unfinished() - running
    s.check("the backup was made in the midst of it: tasks waited, ran and were done",
            f"{waiting} waited, {running} ran, {done} were done", waiting > 0 < running and done > 0)
    s.check("it is consistent: an effect for each that was done", f"{effects} effects", effects == done)
    s.start_worker(**settings)
    wait_until("all are done once more", lambda: s.unfinished() == 0, 300)
    missing, twice = wrong_effects(s.db, range(tasks))
    s.check("each task is done and has had its effect once", f"{s.done()} done, {missing} without, {twice} twice",
            (s.done(), missing, twice) == (tasks, 0, 0))
    again = s.db.value("SELECT COUNT(*) FROM tasks_done WHERE attempt > 1")
    s.check("what ran when it was made was rescued, and counts as run twice", f"{again} of {running}", again == running)


if __name__ == "__main__":
    main(run)
