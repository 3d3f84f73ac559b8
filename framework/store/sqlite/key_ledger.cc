#include "framework/store/sqlite/key_ledger.h"

#include "framework/store/sqlite/rows.h"

namespace millrace::engine {
namespace {

constexpr char kHasStarted[] = "9999-12-31 00:00:00.000000";

struct Entry {
  std::optional<TaskKey> task = {};  // nullopt: of a table that can't be one of tasks
  std::string holder = {};           // table/id, as it stands; empty: there is no entry
  bool ended = false;
  std::string keep_until = {};
};

Result<Entry> ReadEntry(SqliteConnection& db, std::string_view handler, std::string_view key) {
  auto rows = db.Select(
      "SELECT task_table, task_id, ended_at, keep_until FROM tasks_keys WHERE handler=? AND biz_key=?",
      handler, key);
  Entry entry;
  if (rows.Next()) {
    entry = {.ended = !rows.IsNull(2), .keep_until = rows.Text(3)};
    if (const auto table = ParseTableName(rows.Text(0))) entry.task = TaskKey{*table, rows.Id(1)};
    entry.holder = rows.Text(0) + "/" + std::to_string(rows.Id(1));
  }
  if (rows.error()) return Fail(*rows.error());
  return entry;
}

Result<bool> Exists(SqliteConnection& db, const std::string& sql, const SqlBind& value) {
  auto rows = db.Start(sql, &value, 1);
  const bool found = rows.Next();
  if (rows.error()) return Fail(*rows.error());
  return found;
}

// Whether the task stands in one of its table's pools.
Result<bool> IsInAPool(SqliteConnection& db, const TaskKey& task) {
  const auto table = Exists(db, "SELECT 1 FROM millrace_schema WHERE task_table=?", task.table);
  if (!table || !*table) return table;
  for (const char* pool : {"", "_done", "_failed"}) {
    const auto found = Exists(db, "SELECT 1 FROM " + task.table + pool + " WHERE id=?", task.id);
    if (!found || *found) return found;
  }
  return false;
}

// An entry whose retention has passed, or whose task was lost before it ended, counts no more.
Result<bool> IsVoid(SqliteConnection& db, const Entry& entry, const std::string& now) {
  if (entry.holder.empty()) return true;
  if (!entry.keep_until.empty() && entry.keep_until <= now) return true;
  if (entry.ended) return false;
  if (!entry.task) return true;
  BOOST_OUTCOME_TRY(present, IsInAPool(db, *entry.task));
  return !present;
}

}  // namespace

Result<std::string> KeyHolder(SqliteConnection& db, std::string_view handler, std::string_view key,
                              const std::string& now) {
  BOOST_OUTCOME_TRY(entry, ReadEntry(db, handler, key));
  BOOST_OUTCOME_TRY(is_void, IsVoid(db, entry, now));
  if (is_void) return std::string();
  return entry.holder;
}

Result<std::string> TakeKey(SqliteConnection& db, std::string_view handler, std::string_view key,
                            const TaskKey& task, const std::string& now) {
  BOOST_OUTCOME_TRY(entry, ReadEntry(db, handler, key));
  if (entry.task != task) {
    BOOST_OUTCOME_TRY(is_void, IsVoid(db, entry, now));
    if (!is_void) return entry.holder;
  } else if (!entry.ended) {
    return std::string();
  }
  BOOST_OUTCOME_TRYV(
      db.Run("INSERT OR REPLACE INTO tasks_keys (handler, biz_key, task_table, task_id, entered_at) VALUES "
             "(?,?,?,?,?)",
             handler, key, task.table, task.id, now));
  return std::string();
}

Status SetKeyFate(SqliteConnection& db, std::string_view handler, std::string_view key, const TaskKey& task,
                  KeyFate fate, WallTime now) {
  if (key.empty()) return {};
  const std::string mine = " WHERE handler=? AND biz_key=? AND task_table=? AND task_id=?";
  const std::string never_started = mine + " AND keep_until IS NULL AND ended_at IS NULL";
  if (fate == KeyFate::Free) {
    BOOST_OUTCOME_TRYV(db.Run("DELETE FROM tasks_keys" + never_started, handler, key, task.table, task.id));
    fate = KeyFate::Retain;  // of what is left
  }
  const bool ends = fate == KeyFate::Retain || fate == KeyFate::Failed;
  const std::string ended = ends ? TimeText(now) : "";
  const std::string keep = fate == KeyFate::Retain   ? TimeText(now + kKeyRetention)
                           : fate == KeyFate::Failed ? ""
                                                     : kHasStarted;
  BOOST_OUTCOME_TRYV(db.Run(
      "UPDATE tasks_keys SET ended_at=?, keep_until=?" + (fate == KeyFate::Started ? never_started : mine),
      SqlBind::OrNull(ended), SqlBind::OrNull(keep), handler, key, task.table, task.id));
  return {};
}

}  // namespace millrace::engine
