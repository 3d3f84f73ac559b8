#include "framework/store/mysql/key_texts.h"

#include <algorithm>

#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

constexpr const char* kEnded = "ended_at=UTC_TIMESTAMP(6), keep_until=UTC_TIMESTAMP(6) + INTERVAL 30 DAY";
constexpr const char* kHasStarted = "keep_until='9999-12-31'";
constexpr const char* kNeverStarted = " AND keep_until IS NULL AND ended_at IS NULL";

std::string Where(KeyEntries& entries) {
  std::sort(entries.begin(), entries.end());
  std::string keys;
  std::string tasks;
  for (const KeyEntry& entry : entries) {
    keys += (keys.empty() ? "(" : ",(") + Quote(entry.handler) + "," + Quote(entry.key) + ")";
    tasks +=
        (tasks.empty() ? "(" : ",(") + Quote(entry.task.table) + "," + std::to_string(entry.task.id) + ")";
  }
  return " WHERE (handler,biz_key) IN (" + keys + ") AND (task_table,task_id) IN (" + tasks + ")";
}

std::string Update(KeyEntries& entries, const std::string& set, const std::string& condition = "") {
  if (entries.empty()) return {};
  return "UPDATE tasks_keys FORCE INDEX (PRIMARY) SET " + set + Where(entries) + condition;
}

}  // namespace

std::string KeepText(KeyEntries entries) { return Update(entries, kEnded); }

std::string KeepStartedText(KeyEntries entries) {
  return Update(entries, kEnded, " AND keep_until IS NOT NULL");
}

std::string FreeUnstartedText(KeyEntries entries) {
  if (entries.empty()) return {};
  return "DELETE tasks_keys FROM tasks_keys FORCE INDEX (PRIMARY)" + Where(entries) + kNeverStarted;
}

std::string FailText(KeyEntries entries) {
  return Update(entries, "ended_at=UTC_TIMESTAMP(6), keep_until=NULL");
}

std::string MarkStartedText(KeyEntries entries) { return Update(entries, kHasStarted, kNeverStarted); }

std::string ReopenText(KeyEntries entries) {
  return Update(entries, std::string("ended_at=NULL, ") + kHasStarted);
}

std::string MarkInDoubtText(const TableName& table, const std::string& ids) {
  return "UPDATE " + table +
         " t FORCE INDEX (PRIMARY) STRAIGHT_JOIN tasks_keys k FORCE INDEX (PRIMARY) ON k.handler=t.handler "
         "AND "
         "k.biz_key=t.biz_key SET k." +
         kHasStarted + " WHERE t.id IN (" + ids + ") AND k.task_id=t.id AND k.task_table=" + Quote(table) +
         " AND k.keep_until IS NULL AND k.ended_at IS NULL";
}

}  // namespace millrace::engine::mysql
