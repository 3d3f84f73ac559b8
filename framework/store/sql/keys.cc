#include "framework/store/sql/keys.h"

#include <algorithm>
#include <set>

#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

// Of so many keys.
std::string These(std::size_t keys) { return "(handler,biz_key)" + InTuples("(?,?)", keys); }

std::vector<Value> ValuesOf(const std::vector<LedgerKey>& keys) {
  std::vector<Value> values;
  for (const auto& [handler, key] : keys) values.insert(values.end(), {handler, key});
  return values;
}

// Of these tasks, those that are in one of their table's pools.
Result<std::set<TaskKey>> Present(Connection& db, const std::vector<TaskKey>& tasks) {
  std::set<TaskKey> present;
  std::map<TableName, std::vector<std::uint64_t>> tables;
  for (const TaskKey& key : tasks) tables[key.table].push_back(key.id);
  if (tables.empty()) return present;
  std::vector<Value> names;
  for (const auto& [table, ids] : tables) names.emplace_back(table);
  std::set<std::string> there;  // by the database's word: the others were dropped, or never were
  BOOST_OUTCOME_TRYV(db.Query("SELECT name FROM $tables WHERE name IN (" + Repeat("?", names.size()) + ")",
                              Connection::Values(names), [&](const Row& row) { there.insert(row.Text(1)); }));
  for (const auto& [table, ids] : tables) {
    if (!there.contains(std::string(table.text()))) continue;
    const std::string list = List(Sorted(ids));
    std::string text;
    for (const char* pool : {"", "_done", "_failed"}) {
      text += (text.empty() ? "SELECT id FROM " : " UNION ALL SELECT id FROM ") + table + pool +
              " WHERE id IN (" + list + ")";
    }
    BOOST_OUTCOME_TRYV(db.Query(text, {}, [&, &table = table](const Row& row) {
      present.insert({table, row.Number(1)});
    }));
  }
  return present;
}

}  // namespace

Result<std::map<LedgerKey, LedgerEntry>> LockEntries(Connection& db, const std::vector<LedgerKey>& keys) {
  std::map<LedgerKey, LedgerEntry> entries;
  if (keys.empty()) return entries;
  BOOST_OUTCOME_TRYV(db.Query(
      "SELECT handler,biz_key,task_table,task_id,ended_at IS NOT NULL,COALESCE(keep_until<=$now,0) FROM "
      "tasks_keys$primary WHERE " +
          These(keys.size()) + " ORDER BY handler,biz_key$lock",
      Connection::Values(ValuesOf(keys)), [&](const Row& row) {
        LedgerEntry& entry = entries[{row.Text(1), row.Text(2)}];
        if (const auto table = ParseTableName(row.Text(3))) entry.task = TaskKey{*table, row.Number(4)};
        entry.holder = row.Text(3) + "/" + std::to_string(row.Number(4));
        entry.ended = row.Number(5) != 0;
        entry.expired = row.Number(6) != 0;
      }));
  return entries;
}

Status RemoveVoid(Connection& db, std::map<LedgerKey, LedgerEntry>& entries) {
  std::vector<TaskKey> open;
  for (const auto& [key, entry] : entries) {
    if (!entry.ended && !entry.expired && entry.task) open.push_back(*entry.task);
  }
  BOOST_OUTCOME_TRY(present, Present(db, open));
  std::vector<LedgerKey> voided;
  for (const auto& [key, entry] : entries) {
    const bool there = entry.task && present.contains(*entry.task);
    if (entry.expired || (!entry.ended && !there)) voided.push_back(key);
  }
  if (voided.empty()) return {};
  for (const LedgerKey& key : voided) entries.erase(key);
  BOOST_OUTCOME_TRYV(
      db.Write("$remove(tasks_keys) WHERE " + These(voided.size()), Connection::Values(ValuesOf(voided))));
  return {};
}

Status SetFate(Connection& db, KeyEntries entries, KeyFate fate) {
  if (entries.empty()) return {};
  std::sort(entries.begin(), entries.end());
  std::vector<Value> values;
  for (const KeyEntry& entry : entries) values.insert(values.end(), {entry.handler, entry.key});
  for (const KeyEntry& entry : entries) values.insert(values.end(), {entry.task.table, entry.task.id});
  constexpr const char* kUpdate = "UPDATE tasks_keys$primary SET ";
  static const std::string kEnded =
      "ended_at=$now, keep_until=$after(" + std::to_string(kKeyRetention.count()) + ")";
  constexpr const char* kHasStarted = "keep_until='9999-12-31 00:00:00.000000'";
  constexpr const char* kNeverStarted = " AND keep_until IS NULL AND ended_at IS NULL";
  std::string text;
  std::string condition;
  switch (fate) {
    case KeyFate::Keep:
      text = std::string(kUpdate) + kEnded;
      break;
    case KeyFate::KeepStarted:
      text = std::string(kUpdate) + kEnded;
      condition = " AND keep_until IS NOT NULL";
      break;
    case KeyFate::FreeUnstarted:
      text = "$remove(tasks_keys)";
      condition = kNeverStarted;
      break;
    case KeyFate::Fail:
      text = std::string(kUpdate) + "ended_at=$now, keep_until=NULL";
      break;
    case KeyFate::Start:
      text = std::string(kUpdate) + kHasStarted;
      condition = kNeverStarted;
      break;
    case KeyFate::Reopen:
      text = std::string(kUpdate) + "ended_at=NULL, " + kHasStarted;
      break;
  }
  BOOST_OUTCOME_TRYV(db.Write(text + " WHERE " + These(entries.size()) + " AND (task_table,task_id)" +
                                  InTuples("(?,?)", entries.size()) + condition,
                              Connection::Values(values)));
  return {};
}

// A task that was cancelled and not started in this attempt may have been in an earlier one: its entry says
// so.
Status EndKeys(Connection& db, const std::vector<const Settlement*>& batch) {
  using To = Settlement::To;
  KeyEntries kept;
  KeyEntries maybe_free;
  KeyEntries failed;
  KeyEntries started;
  for (const Settlement* one : batch) {
    if (one->biz_key.empty()) continue;
    const KeyEntry entry{one->handler, one->biz_key, one->key};
    if (one->to == To::Failed) {
      failed.push_back(entry);
    } else if (one->to == To::Waiting) {
      if (one->started) started.push_back(entry);
    } else {
      (one->to == To::Cancelled && !one->started ? maybe_free : kept).push_back(entry);
    }
  }
  BOOST_OUTCOME_TRYV(SetFate(db, std::move(kept), KeyFate::Keep));
  BOOST_OUTCOME_TRYV(SetFate(db, maybe_free, KeyFate::KeepStarted));
  BOOST_OUTCOME_TRYV(SetFate(db, std::move(maybe_free), KeyFate::FreeUnstarted));
  BOOST_OUTCOME_TRYV(SetFate(db, std::move(failed), KeyFate::Fail));
  return SetFate(db, std::move(started), KeyFate::Start);
}

}  // namespace millrace::engine::sql
