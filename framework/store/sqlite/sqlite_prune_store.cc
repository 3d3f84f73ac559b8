#include "framework/store/sqlite/sqlite_prune_store.h"

#include <algorithm>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "framework/store/sqlite/counters.h"
#include "framework/store/sqlite/rows.h"

namespace millrace::engine {
namespace {

std::uint64_t Capped(std::size_t limit) { return std::min(limit, kMaxBatchRows); }

bool IsOverdue(const KeepRule& rule, const std::string& handler, WallTime finished_at, WallTime now) {
  const auto own = rule.by_handler.find(handler);
  const std::optional<Micros> keep =
      own == rule.by_handler.end() ? rule.otherwise : std::optional<Micros>(own->second);
  return keep && finished_at < now - *keep;
}

}  // namespace

Result<PruneStep> SqlitePruneStore::PruneEnded(const KeepRule& rule, const std::string& after,
                                               std::size_t limit) {
  return db_.Write([&]() -> Result<PruneStep> {
    PruneStep step;
    std::vector<std::uint64_t> overdue;
    std::uint64_t seen = 0;
    const WallTime now = StoreNow();
    auto rows = db_.Select(
        "SELECT id, handler, finished_at FROM " + rule.table + "_done WHERE id>? ORDER BY id LIMIT ?",
        static_cast<std::uint64_t>(std::strtoull(after.c_str(), nullptr, 10)), Capped(limit));
    while (rows.Next()) {
      ++seen;
      step.next = rows.Text(0);
      if (IsOverdue(rule, rows.Text(1), TimeOf(rows.Text(2)), now)) overdue.push_back(rows.Id(0));
    }
    if (rows.error()) return Fail(*rows.error());
    if (seen < Capped(limit)) step.next.clear();
    for (const std::uint64_t id : overdue) {
      BOOST_OUTCOME_TRYV(db_.Run("DELETE FROM " + rule.table + "_done WHERE id=?", id));
      BOOST_OUTCOME_TRYV(
          db_.Run("DELETE FROM millrace_attempts WHERE task_table=? AND task_id=?", rule.table, id));
    }
    step.removed = overdue.size();
    return step;
  });
}

Result<PruneStep> SqlitePruneStore::PruneKeys(const std::string& after, std::size_t limit) {
  return db_.Write([&]() -> Result<PruneStep> {
    PruneStep step;
    std::vector<std::pair<std::string, std::string>> overdue;
    std::uint64_t seen = 0;
    const std::string now = TimeText(StoreNow());
    // A handler's name holds no colon.
    const std::size_t colon = std::min(after.find(':'), after.size());
    const std::string handler = after.substr(0, colon);
    const std::string key = colon < after.size() ? after.substr(colon + 1) : "";
    const auto take = [&](SqliteRows rows) -> Status {
      while (rows.Next()) {
        ++seen;
        step.next = rows.Text(0) + ":" + rows.Text(1);
        if (rows.Integer(2) != 0) overdue.emplace_back(rows.Text(0), rows.Text(1));
      }
      return rows.Finish();
    };
    // A row value would be sought by its first column alone: see due_map.cc.
    const std::string columns = "SELECT handler, biz_key, coalesce(keep_until<=?, 0) FROM tasks_keys WHERE ";
    BOOST_OUTCOME_TRYV(take(db_.Select(columns + "handler=? AND biz_key>? ORDER BY biz_key LIMIT ?", now,
                                       handler, key, Capped(limit))));
    BOOST_OUTCOME_TRYV(take(db_.Select(columns + "handler>? ORDER BY handler, biz_key LIMIT ?", now, handler,
                                       Capped(limit) - seen)));
    if (seen < Capped(limit)) step.next.clear();
    for (const auto& [handler, biz_key] : overdue) {
      BOOST_OUTCOME_TRYV(db_.Run("DELETE FROM tasks_keys WHERE handler=? AND biz_key=?", handler, biz_key));
    }
    step.removed = overdue.size();
    return step;
  });
}

Result<std::size_t> SqlitePruneStore::PruneIncarnations(Micros age, std::size_t limit) {
  return db_.Write([&]() -> Result<std::size_t> {
    const std::string before = TimeText(StoreNow() - age);
    std::vector<std::tuple<std::string, std::string, std::string, std::string>> folded;
    CounterSums sums;
    auto rows = db_.Select(
        "SELECT task_table, handler, batch, incarnation, succeeded, cancelled, failed, attempts_failed FROM"
        " millrace_counters WHERE incarnation IN (SELECT id FROM millrace_incarnations WHERE dead=1 AND"
        " started_at<?) LIMIT ?",
        before, Capped(limit));
    while (rows.Next()) {
      folded.emplace_back(rows.Text(0), rows.Text(1), rows.Text(2), rows.Text(3));
      CounterDelta& sum = sums.Of(rows.Text(0), rows.Text(1), rows.Text(2));
      sum.succeeded += rows.Integer(4);
      sum.cancelled += rows.Integer(5);
      sum.failed += rows.Integer(6);
      sum.attempts_failed += rows.Integer(7);
    }
    if (rows.error()) return Fail(*rows.error());
    BOOST_OUTCOME_TRYV(sums.Write(db_, ""));
    for (const auto& [table, handler, batch, incarnation] : folded) {
      BOOST_OUTCOME_TRYV(db_.Run(
          "DELETE FROM millrace_counters WHERE task_table=? AND handler=? AND batch=? AND incarnation=?",
          table, handler, batch, incarnation));
    }
    if (!folded.empty()) return folded.size();
    BOOST_OUTCOME_TRY(gone, db_.Run("DELETE FROM millrace_incarnations WHERE id IN (SELECT id FROM "
                                    "millrace_incarnations WHERE dead=1 AND"
                                    " started_at<? LIMIT ?)",
                                    before, Capped(limit)));
    return static_cast<std::size_t>(gone);
  });
}

}  // namespace millrace::engine
