#include <algorithm>
#include <map>

#include "framework/store/sql/keys.h"
#include "framework/store/sql/operations.h"
#include "framework/store/sql/task_store.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

// Takes out the tasks whose keys somebody has locked.
Status LeaveLocked(Connection& db, KeyEntries& keys, std::vector<std::uint64_t>& ids) {
  std::vector<LedgerKey> names;
  for (const KeyEntry& entry : keys) names.emplace_back(entry.handler, entry.key);
  BOOST_OUTCOME_TRY(locked, LockedKeys(db, names));
  const auto is_locked = [&](const KeyEntry& entry) { return locked.contains({entry.handler, entry.key}); };
  for (const KeyEntry& entry : keys) {
    if (is_locked(entry)) std::erase(ids, entry.task.id);
  }
  std::erase_if(keys, is_locked);
  return {};
}

}  // namespace

// Where the database refuses a row, a constraint or a trigger say, the others must not wait for it. Where it
// refuses many, it is left at that for now: each half is a transaction.
Result<std::vector<std::uint64_t>> SqlTaskStore::Rescue(const RescueRequest& request) {
  BOOST_OUTCOME_TRYV(CheckBatch(request.ids.size()));
  constexpr int kMostRefusals = 16;
  std::vector<std::uint64_t> all;
  std::optional<Error> why;
  int refusals = 0;
  std::vector<std::vector<std::uint64_t>> parts{request.ids};
  while (!parts.empty() && refusals < kMostRefusals) {
    const std::vector<std::uint64_t> ids = std::move(parts.back());
    parts.pop_back();
    const auto rescued = RescueTogether({request.table, request.claimed_by, request.attempt, ids});
    if (rescued) {
      all.insert(all.end(), rescued->begin(), rescued->end());
      continue;
    }
    why = rescued.error();
    if (why->code != ErrorCode::Invalid) break;
    if (ids.size() == 1) {
      ++refusals;
      continue;
    }
    const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(ids.size() / 2);
    parts.emplace_back(middle, ids.end());
    parts.emplace_back(ids.begin(), middle);
  }
  if (all.empty() && why) return Fail(*why);
  return all;
}

Result<std::vector<std::uint64_t>> SqlTaskStore::RescueTogether(const RescueRequest& request) {
  std::vector<std::uint64_t> rescued;
  if (request.ids.empty()) return rescued;
  BOOST_OUTCOME_TRY(claimer, ByName(request.claimed_by));
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRY(alive, IsAlive(claimer, "$share"));
  if (alive) return rescued;
  // Rows that a settle or an open transaction of the dead one still holds are left for the next sweep, and so
  // are those whose keys are held.
  KeyEntries keys;
  BOOST_OUTCOME_TRYV(db_.Query("SELECT id,handler,biz_key FROM " + request.table + "$primary WHERE id IN (" +
                                   List(Sorted(request.ids)) +
                                   ") AND state=2 AND claimed_by=? AND attempt=? ORDER BY id$free",
                               {claimer.number, request.attempt}, [&](const Row& row) {
                                 rescued.push_back(row.Number(1));
                                 if (!row.Null(3))
                                   keys.push_back({row.Text(2), row.Text(3), {request.table, row.Number(1)}});
                               }));
  BOOST_OUTCOME_TRYV(LeaveLocked(db_, keys, rescued));
  if (rescued.empty()) return rescued;
  const std::string in = " WHERE id IN (" + List(rescued) + ")";
  // Nobody can tell whether their handlers were called.
  BOOST_OUTCOME_TRYV(SetFate(db_, std::move(keys), KeyFate::Start));
  BOOST_OUTCOME_TRYV(db_.Write(
      "INSERT INTO millrace_attempts (task_table,task_id,attempt,at,incarnation,kind,error_class,message) "
      "SELECT ?,id,attempt,$now,?,'rescued','lost_worker',? FROM " +
          request.table + "$primary" + in + "$upsert task_id=$brought(task_id)",
      {request.table, claimer.name, "the worker " + claimer.name + " is dead; the task waits again"}));
  BOOST_OUTCOME_TRYV(
      db_.Write("UPDATE " + request.table +
                    "$primary SET state=0, claimed_by=0, run_at=CASE WHEN run_at<$now THEN run_at ELSE $now "
                    "END, updated_at=$now" +
                    in,
                {}));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return rescued;
}

Result<std::vector<TaskKey>> SqlTaskStore::Cancelled(const std::string& incarnation,
                                                     std::span<const TaskKey> running) {
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  std::map<TableName, std::vector<std::uint64_t>> tables;
  for (const TaskKey& key : running) tables[key.table].push_back(key.id);
  std::vector<TaskKey> cancelled;
  for (const auto& [table, ids] : tables) {
    for (std::size_t at = 0; at < ids.size(); at += kMaxBatchRows) {
      const auto part = std::span(ids).subspan(at, std::min(kMaxBatchRows, ids.size() - at));
      BOOST_OUTCOME_TRYV(db_.Query("SELECT id FROM " + table + "$primary WHERE id IN (" + List(Sorted(part)) +
                                       ") AND state=2 AND cancel<>0 AND claimed_by=?",
                                   {claimer.number}, [&, &table = table](const Row& row) {
                                     cancelled.push_back({table, row.Number(1)});
                                   }));
    }
  }
  return cancelled;
}

}  // namespace millrace::engine::sql
