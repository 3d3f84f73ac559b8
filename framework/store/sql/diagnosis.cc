#include "framework/store/sql/diagnosis.h"

#include <string>

namespace millrace::engine::sql {
namespace {

// A text of one pool and its counters: one statement, so that no settle comes in between.
std::string SampleText(const std::string& pool, const std::string& sums) {
  return "SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM " + pool + " LIMIT " + std::to_string(kPoolSample + 1) +
         ") AS sampled),(SELECT COALESCE(SUM(" + sums + "),0) FROM millrace_counters WHERE task_table=?)";
}

}  // namespace

Result<std::vector<PoolSample>> SamplePools(Connection& db, std::span<const TableInfo> tables) {
  std::vector<PoolSample> samples;
  for (const TableInfo& info : tables) {
    PoolSample failed{.pool = info.table + "_failed", .exact = true};
    PoolSample done{.pool = info.table + "_done"};
    const auto read = [](PoolSample& sample) {
      return [&sample](const Row& row) {
        sample.rows = row.Number(1);
        sample.counted = row.Signed(2);
      };
    };
    BOOST_OUTCOME_TRYV(db.Query(SampleText(failed.pool, "failed"), {info.table}, read(failed)));
    BOOST_OUTCOME_TRYV(db.Query(SampleText(done.pool, "succeeded+cancelled"), {info.table}, read(done)));
    // A handler that kills its worker is told by its error, and by the crashes that were charged to it.
    BOOST_OUTCOME_TRYV(db.Query("SELECT COUNT(*) FROM (SELECT last_error FROM " + failed.pool +
                                    "$primary LIMIT " + std::to_string(kPoolSample) +
                                    ") AS sampled WHERE last_error LIKE 'quarantined:%'",
                                {}, [&](const Row& row) { failed.suspect = row.Number(1); }));
    samples.push_back(std::move(failed));
    samples.push_back(std::move(done));
  }
  return samples;
}

}  // namespace millrace::engine::sql
