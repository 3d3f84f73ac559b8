#include "framework/store/sqlite/counters.h"

namespace millrace::engine {

Status CounterSums::Write(SqliteConnection& db, const std::string& incarnation) const {
  for (const auto& [group, delta] : sums_) {
    const auto& [table, handler, batch] = group;
    BOOST_OUTCOME_TRYV(db.Run(
        "INSERT INTO millrace_counters (task_table, handler, batch, incarnation, succeeded, cancelled, "
        "failed,"
        " attempts_failed) VALUES (?,?,?,?,?,?,?,?) ON CONFLICT DO UPDATE SET "
        "succeeded=succeeded+excluded.succeeded,"
        " cancelled=cancelled+excluded.cancelled, failed=failed+excluded.failed,"
        " attempts_failed=attempts_failed+excluded.attempts_failed",
        table, handler, batch, incarnation, delta.succeeded, delta.cancelled, delta.failed,
        delta.attempts_failed));
  }
  return {};
}

}  // namespace millrace::engine
