"""A great many finished tasks are pruned beside the real work, which goes on as it was."""
import time

from chaos.mariadb import numbers
from chaos.offered import OfferedLoad, capacity, slowest_window
from chaos.processes import wait_until
from chaos.scenario import main

FIRST = 1_000_000  # ids of those that are to go; the load's come behind them
PART = 50_000


def fill(s, rows):
    """Finished tasks of eight days ago, which the default keeps for seven. They never waited here, and are no part of
    what the transitions are to prove; nor is their end."""
    for trigger in ("i", "d"):
        s.db.rows(f"DROP TRIGGER test_tasks_done_{trigger}")
    for start in range(0, rows, PART):
        s.db.rows("INSERT INTO tasks_done (id, slice, state, handler, params, attempt, claimed_by, result, finished_at) "
                  f"SELECT {FIRST + start} + seq, seq MOD 64, 1, 'old', '{{\"n\": 1}}', 1, 'w0.1', 'done', "
                  f"UTC_TIMESTAMP(6) - INTERVAL 8 DAY FROM {numbers(min(PART, rows - start))}")
    s.db.rows(f"ALTER TABLE tasks AUTO_INCREMENT = {FIRST + rows + 1}")
    s.record_transitions()
    s.db.rows("DROP TRIGGER test_tasks_done_d")


def run(s):
    rows = s.size(20_000, 1_000_000)
    s.start_mariadb()
    s.apply_schema()
    first = s.start_worker()
    rate = capacity(s, 200_000) / 2 if s.full else 200
    first.terminate()
    wait_until("the first worker has ended", lambda: not first.runs(), 30)
    fill(s, rows)

    load = OfferedLoad(s.db, rate)
    s.start_worker("w2")  # whoever begins to look after a shard walks over it at once
    wait_until("it works", lambda: s.done_of("award_points") > 0, 30, 0.05)
    since, began = s.now(), time.monotonic()
    left = f"SELECT EXISTS (SELECT 1 FROM tasks_done WHERE id > {FIRST} AND id <= {FIRST + rows})"
    wait_until("what is kept no longer is gone", lambda: not s.db.value(left), s.size(60, 300), 0.5)
    took = time.monotonic() - began
    time.sleep(max(0, 8 - took))  # some windows more
    until = s.now()
    load.check_all_awarded(s)
    worst = slowest_window(s, rate, since, until)
    s.check(f"{rows:,} finished tasks are pruned" + (" at half of what can be settled" if s.full else "")
            + f" ({rate:.0f} tasks a second): at least 0.9 of what is offered ends in every 5 s",
            f"{worst:.2f} in the worst of them; they were gone in {took:.0f} s", worst >= 0.9)


if __name__ == "__main__":
    main(run)
