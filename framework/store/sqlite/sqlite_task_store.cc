#include "framework/store/sqlite/sqlite_task_store.h"

#include <algorithm>

#include "framework/store/sql/keys.h"
#include "framework/store/sqlite/due_map.h"
#include "framework/store/sqlite/rows.h"
#include "framework/store/sqlite/settle.h"

namespace millrace::engine {
namespace {

std::vector<std::uint64_t> Sorted(std::vector<std::uint64_t> ids) {
  std::sort(ids.begin(), ids.end());
  return ids;
}

Status CheckSize(std::size_t count) {
  if (count <= kMaxBatchRows) return {};
  return Fail(ErrorCode::Invalid, std::to_string(count) + " rows in one batch; the limit is 999");
}

// Appends the row that a statement gives, if it gives one.
Status TakeTask(SqliteRows rows, const TableName& table, std::vector<Task>& tasks) {
  if (rows.Next()) tasks.push_back(ReadTask(rows, table));
  return rows.Finish();
}

// Of a text, not the characters, as length() counts them.
std::string BytesOf(const std::string& column) { return "ifnull(length(CAST(" + column + " AS BLOB)), 0)"; }

std::string ScanGroup(const TableName& table, bool with_bytes) {
  const std::string bytes =
      with_bytes ? BytesOf("params") + " + " + BytesOf("last_error") + " + " + BytesOf("progress") : "0";
  return "SELECT id, run_at, state, attempt, crashes, claimed_by, " + bytes + " FROM " + table +
         " INDEXED BY " + table +
         "_due WHERE slice=? AND handler=? AND urgency=? AND urgency IS NOT NULL AND ";
}

Status TakeScanRows(SqliteRows rows, std::vector<ScanRow>& found) {
  while (rows.Next()) {
    found.push_back({rows.Id(0), TimeOf(rows.Text(1)), static_cast<TaskState>(rows.Integer(2)),
                     rows.Number(3), rows.Number(4), rows.Text(5),
                     static_cast<std::size_t>(rows.Integer(6))});
  }
  return rows.Finish();
}

}  // namespace

std::string ScanSql(const TableName& table, bool with_bytes) {
  return ScanGroup(table, with_bytes) + "run_at>? AND run_at<=? ORDER BY run_at, id LIMIT ?";
}
std::string ScanTieSql(const TableName& table, bool with_bytes) {
  return ScanGroup(table, with_bytes) + "run_at=? AND id>? ORDER BY id LIMIT ?";
}

Result<DueMap> SqliteTaskStore::Due(std::span<const TableSlices> tables) {
  return db_.Read([&]() -> Result<DueMap> {
    DueMap map;
    for (const DueScope& scope : ScopesOf(tables)) {
      BOOST_OUTCOME_TRYV(ReadDueGroups(db_, scope, map.groups));
    }
    auto paused = db_.Select("SELECT what FROM millrace_pauses ORDER BY what");
    while (paused.Next()) map.pauses.push_back(paused.Text(0));
    if (paused.error()) return Fail(*paused.error());
    map.now = StoreNow();
    return map;
  });
}

Result<std::vector<ScanRow>> SqliteTaskStore::Scan(const ScanRequest& request) {
  const DueGroup& group = request.group;
  const WallTime now = StoreNow();
  const bool from_start = request.after == ScanPosition{};
  // Before the first row is before every text, also of a year that nobody thought of.
  const std::string after = from_start ? "" : TimeText(request.after.run_at);
  return db_.Read([&]() -> Result<std::vector<ScanRow>> {
    std::vector<ScanRow> found;
    if (!from_start && request.after.run_at <= now) {
      auto tie =
          db_.Select(ScanTieSql(group.table, request.with_bytes), group.slice, group.handler, group.urgency,
                     after, request.after.id, static_cast<std::uint64_t>(request.limit));
      BOOST_OUTCOME_TRYV(TakeScanRows(std::move(tie), found));
    }
    if (found.size() == request.limit) return found;
    auto rest =
        db_.Select(ScanSql(group.table, request.with_bytes), group.slice, group.handler, group.urgency, after,
                   TimeText(now), static_cast<std::uint64_t>(request.limit - found.size()));
    BOOST_OUTCOME_TRYV(TakeScanRows(std::move(rest), found));
    return found;
  });
}

Result<bool> SqliteTaskStore::IsAlive(const std::string& incarnation) {
  auto rows = db_.Select("SELECT 1 FROM millrace_incarnations WHERE id=? AND dead=0", incarnation);
  const bool alive = rows.Next();
  if (rows.error()) return Fail(*rows.error());
  return alive;
}

Status SqliteTaskStore::CheckAlive(const std::string& incarnation) {
  BOOST_OUTCOME_TRY(alive, IsAlive(incarnation));
  if (alive) return {};
  return Fail(ErrorCode::Cancelled, "the incarnation " + incarnation + " was marked dead in this shard");
}

Result<std::vector<Task>> SqliteTaskStore::Claim(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(CheckSize(request.ids.size()));
  return db_.Write([&]() -> Result<std::vector<Task>> {
    BOOST_OUTCOME_TRYV(CheckAlive(request.incarnation));
    const std::string now = TimeText(StoreNow());
    const std::string claim = "UPDATE " + request.table +
                              " SET state=2, attempt=attempt+1, claimed_by=?, claimed_at=?, updated_at=?"
                              " WHERE id=? AND state=0 AND attempt=? AND run_at<=?";
    // Two plain statements are quicker than RETURNING, for which SQLite runs a trigger and a table beside.
    const std::string read = "SELECT " + std::string(kTaskColumns) + " FROM " + request.table + " WHERE id=?";
    std::vector<Task> claimed;
    claimed.reserve(request.ids.size());
    for (const std::uint64_t id : Sorted(request.ids)) {
      BOOST_OUTCOME_TRY(row, db_.Run(claim, request.incarnation, now, now, id, request.attempt, now));
      if (row == 0) continue;
      BOOST_OUTCOME_TRYV(TakeTask(db_.Select(read, id), request.table, claimed));
    }
    return claimed;
  });
}

Status SqliteTaskStore::AdoptRows(const ClaimRequest& request, std::uint32_t attempt,
                                  std::vector<Task>& adopted) {
  const std::string sql =
      "UPDATE " + request.table +
      " SET attempt=attempt+1, updated_at=? WHERE id=? AND state=2 AND claimed_by=? AND attempt=?"
      " RETURNING " +
      std::string(kTaskColumns);
  const std::string now = TimeText(StoreNow());
  for (const std::uint64_t id : Sorted(request.ids)) {
    auto rows = db_.Select(sql, now, id, request.incarnation, attempt);
    BOOST_OUTCOME_TRYV(TakeTask(std::move(rows), request.table, adopted));
  }
  return {};
}

Result<std::vector<Task>> SqliteTaskStore::Resolve(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(CheckSize(request.ids.size()));
  return db_.Write([&]() -> Result<std::vector<Task>> {
    std::vector<Task> adopted;
    // The adoption comes first: a row that it raised no longer has the number that the other statement looks
    // for.
    BOOST_OUTCOME_TRY(alive, IsAlive(request.incarnation));
    if (alive) {
      BOOST_OUTCOME_TRYV(AdoptRows(request, request.attempt + 1, adopted));
    }
    const std::string sql = "UPDATE " + request.table +
                            " SET attempt=attempt+1, updated_at=? WHERE id=? AND state=0 AND attempt=?";
    const std::string now = TimeText(StoreNow());
    for (const std::uint64_t id : Sorted(request.ids)) {
      BOOST_OUTCOME_TRYV(db_.Run(sql, now, id, request.attempt));
    }
    return adopted;
  });
}

Result<std::vector<Task>> SqliteTaskStore::Adopt(const ClaimRequest& request) {
  BOOST_OUTCOME_TRYV(CheckSize(request.ids.size()));
  return db_.Write([&]() -> Result<std::vector<Task>> {
    BOOST_OUTCOME_TRYV(CheckAlive(request.incarnation));
    std::vector<Task> adopted;
    BOOST_OUTCOME_TRYV(AdoptRows(request, request.attempt, adopted));
    return adopted;
  });
}

Result<std::vector<std::uint64_t>> SqliteTaskStore::Rescue(const RescueRequest& request) {
  BOOST_OUTCOME_TRYV(CheckSize(request.ids.size()));
  return db_.Write([&]() -> Result<std::vector<std::uint64_t>> {
    std::vector<std::uint64_t> rescued;
    BOOST_OUTCOME_TRY(alive, IsAlive(request.claimed_by));
    if (alive) return rescued;
    const std::string now = TimeText(StoreNow());
    const std::string sql = "UPDATE " + request.table +
                            " SET state=0, claimed_by=NULL, claimed_at=NULL, run_at=min(run_at, ?), "
                            "updated_at=? WHERE id=? AND state=2 AND claimed_by=? AND attempt=? RETURNING "
                            "handler, biz_key";
    const std::string message = "the worker " + request.claimed_by + " is dead; the task waits again";
    sql::KeyEntries keys;
    for (const std::uint64_t id : Sorted(request.ids)) {
      auto freed = db_.Select(sql, now, now, id, request.claimed_by, request.attempt);
      const bool was_its = freed.Next();
      if (was_its && !freed.IsNull(1)) keys.push_back({freed.Text(0), freed.Text(1), {request.table, id}});
      BOOST_OUTCOME_TRYV(freed.Finish());
      if (!was_its) continue;
      rescued.push_back(id);
      BOOST_OUTCOME_TRYV(db_.Run(
          "INSERT OR IGNORE INTO millrace_attempts (task_table, task_id, attempt, at, incarnation, kind, "
          "error_class,"
          " message) VALUES (?,?,?,?,?,'rescued','lost_worker',?)",
          request.table, id, request.attempt, now, request.claimed_by, message));
    }
    // Nobody can tell whether their handlers were called.
    BOOST_OUTCOME_TRYV(sql::SetFate(db_, std::move(keys), sql::KeyFate::Start));
    return rescued;
  });
}

Result<SettleReport> SqliteTaskStore::Settle(const std::string& incarnation,
                                             std::span<const Settlement> batch) {
  return db_.Write([&] { return SettleBatch(db_, incarnation, batch); });
}

Result<std::vector<bool>> SqliteTaskStore::StillRunning(const std::string& incarnation,
                                                        std::span<const Settlement> batch) {
  return db_.Read([&]() -> Result<std::vector<bool>> {
    std::vector<bool> running;
    for (const Settlement& settlement : batch) {
      auto rows = db_.Select(
          "SELECT 1 FROM " + settlement.key.table + " WHERE id=? AND state=2 AND claimed_by=? AND attempt=?",
          settlement.key.id, incarnation, settlement.attempt);
      running.push_back(rows.Next());
      if (rows.error()) return Fail(*rows.error());
    }
    return running;
  });
}

Result<std::vector<TaskKey>> SqliteTaskStore::SaveProgress(const std::string& incarnation,
                                                           std::span<const TaskProgress> progress) {
  return db_.Write([&]() -> Result<std::vector<TaskKey>> {
    const std::string now = TimeText(StoreNow());
    for (const TaskProgress& mark : progress) {
      if (!IsUtf8(mark.progress)) continue;
      BOOST_OUTCOME_TRYV(db_.Run("UPDATE " + mark.key.table +
                                     " SET progress=?, updated_at=? WHERE id=? AND state=2 AND claimed_by=? "
                                     "AND attempt=?",
                                 Shorten(mark.progress), now, mark.key.id, incarnation, mark.attempt));
    }
    return std::vector<TaskKey>{};  // nobody locks a single row here
  });
}

Result<std::vector<TaskKey>> SqliteTaskStore::Cancelled(const std::string& incarnation,
                                                        std::span<const TaskKey> running) {
  return db_.Read([&]() -> Result<std::vector<TaskKey>> {
    std::vector<TaskKey> cancelled;
    for (const TaskKey& key : running) {
      auto rows =
          db_.Select("SELECT 1 FROM " + key.table + " WHERE id=? AND state=2 AND claimed_by=? AND cancel<>0",
                     key.id, incarnation);
      if (rows.Next()) cancelled.push_back(key);
      if (rows.error()) return Fail(*rows.error());
    }
    return cancelled;
  });
}

}  // namespace millrace::engine
