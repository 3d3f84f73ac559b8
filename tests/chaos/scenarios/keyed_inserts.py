"""Two rows of one key by plain SQL, and one after the first was pruned: one effect, and the others say of what."""
from chaos.scenario import main

KEYED = ("INSERT INTO tasks (handler, biz_key, params) VALUES "
         "('award_points', 'payment-7', '{\"customer_id\": 7, \"amount\": 5.99}');")


def run(s):
    s.start_mariadb()
    s.apply_schema()
    s.db.client(KEYED * 2)
    s.start_worker()
    s.wait_all_ended(20)
    (winner,) = [row[0] for row in s.db.rows("SELECT id FROM tasks_done WHERE state = 1")]
    s.db.client(f"DELETE FROM tasks_done WHERE id = {winner};" + KEYED)
    s.wait_all_ended(20)
    points = s.db.rows("SELECT points, payments FROM points_account WHERE customer_id = 7")
    s.check("three rows of one key, the winner pruned before the third: one effect", points, points == ((5, 1),))
    skipped = [row[0] for row in s.db.rows("SELECT last_error FROM tasks_done WHERE state = 4")]
    s.check("the other two are skipped as duplicates and say of what", skipped,
            len(skipped) == 2 and all("duplicate of" in text and f"tasks/{winner}" in text for text in skipped))


if __name__ == "__main__":
    main(run)
