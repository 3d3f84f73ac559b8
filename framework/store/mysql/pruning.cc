#include <algorithm>

#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

class MysqlPruneStore final : public PruneStore {
 public:
  MysqlPruneStore(const Endpoint& endpoint, ConnectionPool& pool)
      : session_(endpoint, endpoint.options.lease, &pool) {}

  Result<PruneStep> PruneEnded(const KeepRule& rule, const std::string& after, std::size_t limit) override;
  Result<PruneStep> PruneKeys(const std::string& after, std::size_t limit) override;
  Result<std::size_t> PruneIncarnations(Micros age, std::size_t limit) override;

 private:
  // Adds these rows to those without an incarnation, and removes them.
  Result<std::size_t> Fold(const std::string& counters);
  Result<std::size_t> Run(const std::string& sql) {
    BOOST_OUTCOME_TRY(done, session_.Write(sql));
    return static_cast<std::size_t>(done);
  }

  Session session_;
};

std::string Before(Micros age) {
  return "UTC_TIMESTAMP(6) - INTERVAL " + std::to_string(age.count()) + " MICROSECOND";
}

// Whether a row is kept no longer, as an expression over handler and finished_at.
std::string OverdueText(const KeepRule& rule) {
  std::string text = "CASE handler";
  for (const auto& [handler, keep] : rule.by_handler) {
    text += " WHEN " + Quote(handler) + " THEN finished_at < " + Before(keep);
  }
  if (rule.by_handler.empty()) text += " WHEN '' THEN 0";
  return text + " ELSE " + (rule.otherwise ? "finished_at < " + Before(*rule.otherwise) : "0") + " END";
}

Result<PruneStep> MysqlPruneStore::PruneEnded(const KeepRule& rule, const std::string& after,
                                              std::size_t limit) {
  const std::string pool = rule.table + "_done";
  PruneStep step;
  std::vector<std::uint64_t> overdue;
  std::size_t seen = 0;
  limit = std::min(limit, kMaxBatchRows);
  BOOST_OUTCOME_TRYV(
      session_.Query("SELECT id," + OverdueText(rule) + " FROM " + pool + " FORCE INDEX (PRIMARY) WHERE id>" +
                         (after.empty() ? "0" : Quote(after)) + " ORDER BY id LIMIT " + std::to_string(limit),
                     [&](const Row& row) {
                       ++seen;
                       step.next = row.Text(1);
                       if (row.Number(2) != 0) overdue.push_back(row.Number(1));
                     }));
  if (seen < limit) step.next.clear();
  if (overdue.empty()) return step;
  const std::string ids = List(overdue);
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  BOOST_OUTCOME_TRY(
      removed, Run("DELETE " + pool + " FROM " + pool + " FORCE INDEX (PRIMARY) WHERE id IN (" + ids + ")"));
  BOOST_OUTCOME_TRYV(
      Run("DELETE millrace_attempts FROM millrace_attempts FORCE INDEX (PRIMARY) WHERE task_table=" +
          Quote(rule.table) + " AND task_id IN (" + ids + ")"));
  BOOST_OUTCOME_TRYV(session_.Commit());
  step.removed = removed;
  return step;
}

Result<PruneStep> MysqlPruneStore::PruneKeys(const std::string& after, std::size_t limit) {
  PruneStep step;
  std::string overdue;
  std::size_t seen = 0;
  limit = std::min(limit, kMaxBatchRows);
  std::string behind;
  if (const std::size_t colon = after.find(':'); colon != std::string::npos) {
    const std::string handler = Quote(after.substr(0, colon));
    behind = " WHERE (handler=" + handler + " AND biz_key>UNHEX(" + Quote(after.substr(colon + 1)) +
             ")) OR handler>" + handler;
  }
  // A key may hold any byte.
  BOOST_OUTCOME_TRYV(session_.Query(
      "SELECT handler,HEX(biz_key),COALESCE(keep_until<=UTC_TIMESTAMP(6),0) FROM tasks_keys FORCE INDEX "
      "(PRIMARY)" +
          behind + " ORDER BY handler,biz_key LIMIT " + std::to_string(limit),
      [&](const Row& row) {
        ++seen;
        step.next = row.Text(1) + ":" + row.Text(2);
        if (row.Number(3) == 0) return;
        overdue += (overdue.empty() ? "(" : ",(") + Quote(row.Text(1)) + ",UNHEX('" + row.Text(2) + "'))";
      }));
  if (seen < limit) step.next.clear();
  if (overdue.empty()) return step;
  // Asked again: a void entry may have been taken over since.
  BOOST_OUTCOME_TRY(
      removed, Run("DELETE tasks_keys FROM tasks_keys FORCE INDEX (PRIMARY) WHERE (handler,biz_key) IN (" +
                   overdue + ") AND keep_until<=UTC_TIMESTAMP(6)"));
  step.removed = removed;
  return step;
}

Result<std::size_t> MysqlPruneStore::PruneIncarnations(Micros age, std::size_t limit) {
  const std::string old = "dead=1 AND started_at < " + Before(age);
  const std::string some = " LIMIT " + std::to_string(std::min(limit, kMaxBatchRows));
  std::string counters;
  BOOST_OUTCOME_TRYV(session_.Query(
      "SELECT c.task_table,c.handler,c.batch,c.incarnation FROM millrace_counters c JOIN "
      "millrace_incarnations i ON i.id=c.incarnation WHERE i." +
          old + some,
      [&](const Row& row) {
        counters += (counters.empty() ? "(" : ",(") + Quote(row.Text(1)) + "," + Quote(row.Text(2)) + "," +
                    Quote(row.Text(3)) + "," + Quote(row.Text(4)) + ")";
      }));
  if (!counters.empty()) return Fold(counters);
  std::string gone;
  BOOST_OUTCOME_TRYV(
      session_.Query("SELECT id FROM millrace_incarnations WHERE " + old + some,
                     [&](const Row& row) { gone += (gone.empty() ? "" : ",") + Quote(row.Text(1)); }));
  if (gone.empty()) return std::size_t{0};
  return Run("DELETE FROM millrace_incarnations WHERE id IN (" + gone + ") AND dead=1");
}

Result<std::size_t> MysqlPruneStore::Fold(const std::string& counters) {
  const std::string these =
      " FROM millrace_counters FORCE INDEX (PRIMARY) WHERE (task_table,handler,batch,incarnation) IN (" +
      counters + ")";
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  // One that is marked dead may still settle what nobody has rescued yet.
  BOOST_OUTCOME_TRYV(session_.Query("SELECT 1" + these + " FOR UPDATE", [](const Row&) {}));
  BOOST_OUTCOME_TRYV(Run(
      "INSERT INTO millrace_counters (task_table,handler,batch,incarnation,succeeded,cancelled,failed,"
      "attempts_failed) SELECT * FROM (SELECT task_table,handler,batch,'',SUM(succeeded) s,SUM(cancelled) c,"
      "SUM(failed) f,SUM(attempts_failed) a" +
      these +
      " GROUP BY task_table,handler,batch) sums ON DUPLICATE KEY UPDATE "
      "succeeded=succeeded+VALUES(succeeded), "
      "cancelled=cancelled+VALUES(cancelled), failed=failed+VALUES(failed), "
      "attempts_failed=attempts_failed+VALUES(attempts_failed)"));
  BOOST_OUTCOME_TRY(removed, Run("DELETE millrace_counters" + these));
  BOOST_OUTCOME_TRYV(session_.Commit());
  return removed;
}

}  // namespace

std::unique_ptr<PruneStore> OpenPruning(const Endpoint& endpoint, ConnectionPool& pool) {
  return std::make_unique<MysqlPruneStore>(endpoint, pool);
}

}  // namespace millrace::engine::mysql
