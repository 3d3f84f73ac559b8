#include "framework/base/utf8.h"
#include "framework/store/sql/keys.h"
#include "framework/store/sql/operations.h"
#include "framework/store/sqlite/task_store.h"

namespace millrace::engine::sqlite {

Result<std::vector<std::uint64_t>> SqliteTaskStore::Rescue(const RescueRequest& request) {
  BOOST_OUTCOME_TRYV(sql::CheckBatch(request.ids.size()));
  BOOST_OUTCOME_TRY(claimer, ByName(request.claimed_by));
  return db_.Write([&]() -> Result<std::vector<std::uint64_t>> {
    std::vector<std::uint64_t> rescued;
    BOOST_OUTCOME_TRY(alive, IsAlive(claimer));
    if (alive) return rescued;
    const std::string now = TimeText(db_.Now());
    const std::string sql = "UPDATE " + request.table +
                            " SET state=0, claimed_by=0, run_at=min(run_at, ?), "
                            "updated_at=? WHERE id=? AND state=2 AND claimed_by=? AND attempt=? RETURNING "
                            "handler, biz_key";
    const std::string message = "the worker " + claimer.name + " is dead; the task waits again";
    sql::KeyEntries keys;
    for (const std::uint64_t id : sql::Sorted(request.ids)) {
      auto freed = db_.Select(sql, now, now, id, claimer.number, request.attempt);
      const bool was_its = freed.Next();
      if (was_its && !freed.IsNull(1)) keys.push_back({freed.Text(0), freed.Text(1), {request.table, id}});
      BOOST_OUTCOME_TRYV(freed.Finish());
      if (!was_its) continue;
      rescued.push_back(id);
      BOOST_OUTCOME_TRYV(db_.Run(
          "INSERT OR IGNORE INTO millrace_attempts (task_table, task_id, attempt, at, incarnation, kind, "
          "error_class,"
          " message) VALUES (?,?,?,?,?,'rescued','lost_worker',?)",
          request.table, id, request.attempt, now, claimer.name, message));
    }
    // Nobody can tell whether their handlers were called.
    BOOST_OUTCOME_TRYV(sql::SetFate(db_, std::move(keys), sql::KeyFate::Start));
    return rescued;
  });
}

Result<std::vector<TaskKey>> SqliteTaskStore::SaveProgress(const std::string& incarnation,
                                                           std::span<const TaskProgress> progress) {
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  return db_.Write([&]() -> Result<std::vector<TaskKey>> {
    const std::string now = TimeText(db_.Now());
    for (const TaskProgress& mark : progress) {
      if (!IsUtf8(mark.progress)) continue;
      BOOST_OUTCOME_TRYV(db_.Run("UPDATE " + mark.key.table +
                                     " SET progress=?, updated_at=? WHERE id=? AND state=2 AND claimed_by=? "
                                     "AND attempt=?",
                                 Shorten(mark.progress), now, mark.key.id, claimer.number, mark.attempt));
    }
    return std::vector<TaskKey>{};  // nobody locks a single row here
  });
}

Result<std::vector<TaskKey>> SqliteTaskStore::Cancelled(const std::string& incarnation,
                                                        std::span<const TaskKey> running) {
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  return db_.Read([&]() -> Result<std::vector<TaskKey>> {
    std::vector<TaskKey> cancelled;
    for (const TaskKey& key : running) {
      auto rows =
          db_.Select("SELECT 1 FROM " + key.table + " WHERE id=? AND state=2 AND claimed_by=? AND cancel<>0",
                     key.id, claimer.number);
      if (rows.Next()) cancelled.push_back(key);
      if (rows.error()) return Fail(*rows.error());
    }
    return cancelled;
  });
}

}  // namespace millrace::engine::sqlite
