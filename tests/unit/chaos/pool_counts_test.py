"""Which statements count a pool."""
import unittest

from chaos.pool_counts import counts_pool


class CountsPool(unittest.TestCase):
    def test_whole_pools_however_they_are_wrapped(self):
        for text in ("SELECT COUNT(*) FROM tasks_done",
                     "select count( * ) from `tasks_007_failed` where handler='a'",
                     "SELECT 1 WHERE EXISTS (SELECT COUNT(*) FROM tasks_done LIMIT 1)",
                     "SELECT COUNT(*) FROM (SELECT id FROM tasks_done LIMIT 20001) many",
                     "SELECT COUNT(*) FROM (SELECT 1 UNION ALL SELECT id FROM tasks_done) all_of_them",
                     "SELECT 1 UNION ALL SELECT COUNT(IF(state=0,1,NULL)) FROM tasks FORCE INDEX (due)"):
            self.assertTrue(counts_pool(text), text)

    def test_not_what_is_few_or_no_pool(self):
        for text in ("SELECT id FROM tasks WHERE id IN (1,2)",
                     "SELECT COUNT(*) FROM millrace_batches",
                     "SELECT COUNT(*) FROM tasks_keys",
                     "SELECT slice,COUNT(IF(state=0 AND run_at<=UTC_TIMESTAMP(6),1,NULL)) FROM (SELECT id,slice FROM tasks "
                     "FORCE INDEX (PRIMARY) WHERE id>5 ORDER BY id LIMIT 20000) newer GROUP BY slice",
                     "SELECT MIN(run_at) FROM tasks FORCE INDEX (due) UNION ALL (SELECT COUNT(*) FROM (SELECT id FROM tasks "
                     "LIMIT 1000) newer)"):
            self.assertFalse(counts_pool(text), text)


if __name__ == "__main__":
    unittest.main()
