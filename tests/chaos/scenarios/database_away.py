"""The database away for 20 s under load: nobody is marked dead, nothing runs twice, work goes on by itself."""
import time
from collections import Counter

from chaos.load import NotedProgram
from chaos.processes import wait_until
from chaos.scenario import main


def run(s):
    away = s.size(8, 20)
    lease = s.size(3, 10)
    tasks = s.size(600, 3000)
    engine = {"lease": f"{lease}s"}
    s.start_mariadb()
    s.apply_schema()
    programs = [NotedProgram(s.folder, name, 0.05) for name in ("w1", "w2")]
    s.insert("note", {}, tasks)
    workers = [s.start_worker(name, engine=engine, handlers={"note": program.handler(concurrency=2)})
               for name, program in zip(("w1", "w2"), programs)]
    wait_until("both work", lambda: all(len(program.starts()) > 10 for program in programs), 20)
    s.db.stop()
    time.sleep(away)
    s.db.start()
    before = s.done()
    back = time.monotonic()
    wait_until("work goes on by itself", lambda: s.done() > before, 30)
    took = time.monotonic() - back
    s.check(f"after {away} s without the database work goes on by itself, within 5 s of its return",
            f"next task done after {took:.1f} s", took <= 5)
    s.wait_all_ended(120)
    s.check("nobody is marked dead", f"{s.dead()} dead", s.dead() == 0)
    s.check("both workers live", [worker.runs() for worker in workers], all(worker.runs() for worker in workers))
    starts = Counter(task["name"] for program in programs for _, task in program.starts())
    twice = [name for name, count in starts.items() if count > 1]
    s.check(f"nothing runs twice, all {tasks} done", f"{len(twice)} of {len(starts)} twice, {s.done()} done",
            not twice and len(starts) == tasks == s.done())


if __name__ == "__main__":
    main(run)
