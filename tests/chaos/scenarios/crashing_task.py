"""A task whose handler kills its process: three crashes, then the failed pool, and no neighbour goes with it."""
from chaos.processes import wait_until
from chaos.scenario import main


def run(s):
    neighbours = s.size(300, 2000)
    s.start_mariadb()
    s.apply_schema()
    s.insert("sleep", {"ms": 50}, neighbours // 2)
    crasher = s.insert("crash", {})
    s.insert("sleep", {"ms": 50}, neighbours - neighbours // 2)
    engine = {"lease": f"{s.size(2, 10)}s"}
    handlers = {"sleep": {"concurrency": 8}}
    starts = 0

    def ended():
        nonlocal starts
        if not s.workers or not s.workers[-1].runs():
            starts += 1
            if starts > 10:
                raise AssertionError("the worker died ten times")
            s.start_worker(engine=engine, handlers=handlers)
        return s.unfinished() == 0

    wait_until("every task ended", ended, 180, 0.05)
    failed = s.db.rows("SELECT id, crashes, last_error FROM tasks_failed")
    s.check("after three crashes it is in the failed pool, alone", failed,
            [(row[0], row[1]) for row in failed] == [(crasher, 3)])
    s.check("with that reason", failed[0][2] if failed else "", bool(failed) and "killed the worker's process 3 times" in failed[0][2])
    s.check("the worker was started four times", f"{starts} starts", starts == 4)
    s.check(f"all {neighbours} neighbours succeeded", f"{s.done()} succeeded", s.done() == neighbours)
    worst = s.db.value("SELECT MAX(crashes) FROM tasks_done")
    s.check("no neighbour came near the failed pool: at most two crashes charged", f"{worst}", worst <= 2)


if __name__ == "__main__":
    main(run)
