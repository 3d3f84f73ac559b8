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

std::string RowsOf(const TableName& table, const char* pool, const std::string& ids) {
  return "SELECT id FROM " + table + pool + "$primary WHERE id IN (" + ids + ")";
}

// Takes from `ids` those that are in a pool of the table. A snapshot that the transaction took before may not
// show them: those that it does not are looked for again, as they are by now; a task may go from one pool to
// another meanwhile, and back.
Status DropPresent(Connection& db, const TableName& table, std::vector<std::uint64_t>& ids) {
  std::set<std::uint64_t> absent(ids.begin(), ids.end());
  const auto drop = [&](const Row& row) { absent.erase(row.Number(1)); };
  const std::string all = List(Sorted(ids));
  BOOST_OUTCOME_TRYV(db.Query(RowsOf(table, "", all) + " UNION ALL " + RowsOf(table, "_done", all) +
                                  " UNION ALL " + RowsOf(table, "_failed", all),
                              {}, drop));
  for (const char* pool : {"", "_done", "_failed", ""}) {
    if (absent.empty()) break;
    ids.assign(absent.begin(), absent.end());
    BOOST_OUTCOME_TRYV(db.Query(RowsOf(table, pool, List(ids)) + "$share", {}, drop));
  }
  ids.assign(absent.begin(), absent.end());
  return {};
}

// Of these tasks, those that are in none of their table's pools. A server shows an account only the tables on
// which it has some right: of one that the schema names and that is not shown nobody can tell.
Result<std::set<TaskKey>> Absent(Connection& db, const std::vector<TaskKey>& tasks) {
  std::set<TaskKey> absent(tasks.begin(), tasks.end());
  std::set<TableName> tables;
  for (const TaskKey& key : tasks) tables.insert(key.table);
  std::set<TableName> unseen = tables;
  BOOST_OUTCOME_TRYV(KeepKnown(db, tables));
  for (const TableName& table : tables) unseen.erase(table);
  if (!unseen.empty()) {
    const std::vector<Value> names(unseen.begin(), unseen.end());
    BOOST_OUTCOME_TRYV(db.Query(
        "SELECT task_table FROM millrace_schema WHERE task_table IN (" + Repeat("?", names.size()) + ")",
        Connection::Values(names), [&](const Row& row) {
          std::erase_if(absent, [&](const TaskKey& key) { return key.table == row.Text(1); });
        }));
  }
  for (const TableName& table : tables) {
    std::vector<std::uint64_t> ids;
    for (const TaskKey& key : tasks) {
      if (key.table == table) ids.push_back(key.id);
    }
    std::erase_if(absent, [&](const TaskKey& key) { return key.table == table; });
    BOOST_OUTCOME_TRYV(DropPresent(db, table, ids));
    for (const std::uint64_t id : ids) absent.insert({table, id});
  }
  return absent;
}

}  // namespace

Status KeepKnown(Connection& db, std::set<TableName>& tables) {
  if (tables.empty()) return {};
  const std::vector<Value> names(tables.begin(), tables.end());
  std::set<std::string> there;
  BOOST_OUTCOME_TRYV(db.Query("SELECT name FROM $tables WHERE name IN (" + Repeat("?", names.size()) + ")",
                              Connection::Values(names), [&](const Row& row) { there.insert(row.Text(1)); }));
  std::erase_if(tables, [&](const TableName& table) { return !there.contains(std::string(table.text())); });
  return {};
}

Result<LedgerEntries> ReadEntries(Connection& db, const std::vector<LedgerKey>& keys, std::string_view lock) {
  LedgerEntries entries;
  if (keys.empty()) return entries;
  BOOST_OUTCOME_TRYV(db.Query(
      "SELECT handler,biz_key,task_table,task_id,ended_at IS NOT NULL,COALESCE(keep_until<=$now,0) FROM "
      "tasks_keys$primary WHERE " +
          These(keys.size()) + " ORDER BY handler,biz_key" + std::string(lock),
      Connection::Values(ValuesOf(keys)), [&](const Row& row) {
        LedgerEntry& entry = entries[{row.Text(1), row.Text(2)}];
        if (const auto table = ParseTableName(row.Text(3))) entry.task = TaskKey{*table, row.Number(4)};
        entry.holder = row.Text(3) + "/" + std::to_string(row.Number(4));
        entry.ended = row.Number(5) != 0;
        entry.expired = row.Number(6) != 0;
      }));
  return entries;
}

Result<std::set<LedgerKey>> LockedKeys(Connection& db, const std::vector<LedgerKey>& keys) {
  std::set<LedgerKey> locked;
  BOOST_OUTCOME_TRY(all, ReadEntries(db, keys, ""));
  BOOST_OUTCOME_TRY(free, ReadEntries(db, keys, "$free"));
  for (const auto& [key, entry] : all) {
    if (!free.contains(key)) locked.insert(key);
  }
  return locked;
}

Result<std::vector<LedgerKey>> FindVoid(Connection& db, const LedgerEntries& entries) {
  std::vector<TaskKey> open;
  for (const auto& [key, entry] : entries) {
    if (!entry.ended && !entry.expired && entry.task) open.push_back(*entry.task);
  }
  BOOST_OUTCOME_TRY(absent, Absent(db, open));
  std::vector<LedgerKey> voided;
  for (const auto& [key, entry] : entries) {
    const bool lost = !entry.task || absent.contains(*entry.task);
    if (entry.expired || (!entry.ended && lost)) voided.push_back(key);
  }
  return voided;
}

Result<KeyHolders> FindHolders(Connection& db, const std::string& handler, const std::string& key) {
  std::vector<LedgerKey> keys;
  if (handler.empty()) {
    BOOST_OUTCOME_TRYV(db.Query(
        "SELECT handler FROM tasks_keys WHERE biz_key=? ORDER BY entered_at DESC LIMIT ?",
        {key, std::uint64_t{kMaxBatchRows}}, [&](const Row& row) { keys.emplace_back(row.Text(1), key); }));
  } else {
    keys.emplace_back(handler, key);
  }
  BOOST_OUTCOME_TRY(entries, ReadEntries(db, keys, ""));
  BOOST_OUTCOME_TRY(voided, FindVoid(db, entries));
  KeyHolders holders;
  for (const LedgerKey& one : keys) {
    const auto entry = entries.find(one);
    if (entry == entries.end() || !entry->second.task) continue;
    if (std::find(voided.begin(), voided.end(), one) == voided.end()) {
      holders.tasks.push_back(*entry->second.task);
    } else if (!holders.former && entry->second.expired) {
      holders.former = entry->second.task;
    }
  }
  return holders;
}

Status RemoveVoid(Connection& db, LedgerEntries& entries) {
  BOOST_OUTCOME_TRY(voided, FindVoid(db, entries));
  if (voided.empty()) return {};
  for (const LedgerKey& key : voided) entries.erase(key);
  BOOST_OUTCOME_TRYV(
      db.Write("$remove(tasks_keys) WHERE " + These(voided.size()), Connection::Values(ValuesOf(voided))));
  return {};
}

std::optional<KeyFate> FateOf(const Settlement& settlement) {
  using To = Settlement::To;
  if (settlement.biz_key.empty()) return std::nullopt;
  switch (settlement.to) {
    case To::Succeeded:
      return KeyFate::Keep;
    case To::Cancelled:
      return settlement.started ? KeyFate::Keep : KeyFate::Cancel;
    case To::Failed:
      return KeyFate::Fail;
    case To::Waiting:
    case To::Held:
      break;
  }
  return settlement.started ? std::optional(KeyFate::Start) : std::nullopt;
}

Status SetFate(Connection& db, KeyEntries entries, KeyFate fate) {
  if (entries.empty()) return {};
  std::sort(entries.begin(), entries.end());
  std::vector<Value> values;
  for (const KeyEntry& entry : entries) values.insert(values.end(), {entry.handler, entry.key});
  for (const KeyEntry& entry : entries) values.insert(values.end(), {entry.task.table, entry.task.id});
  const auto write = [&](const std::string& text, const char* condition) -> Status {
    BOOST_OUTCOME_TRYV(db.Write(text + " WHERE " + These(entries.size()) + " AND (task_table,task_id)" +
                                    InTuples("(?,?)", entries.size()) + condition,
                                Connection::Values(values)));
    return {};
  };
  static const std::string kUpdate = "UPDATE tasks_keys$primary SET ";
  static const std::string kKeep =
      kUpdate + "ended_at=$now, keep_until=$after(" + std::to_string(kKeyRetention.count()) + ")";
  constexpr const char* kHasStarted = "keep_until='9999-12-31 00:00:00.000000'";
  constexpr const char* kNeverStarted = " AND keep_until IS NULL AND ended_at IS NULL";
  switch (fate) {
    case KeyFate::Keep:
      return write(kKeep, "");
    case KeyFate::Cancel: {
      BOOST_OUTCOME_TRYV(write(kKeep, " AND keep_until IS NOT NULL"));
      return write("$remove(tasks_keys)", kNeverStarted);
    }
    case KeyFate::Fail:
      return write(kUpdate + "ended_at=$now, keep_until=NULL", "");
    case KeyFate::Start:
      return write(kUpdate + kHasStarted, kNeverStarted);
    case KeyFate::Reopen:
      return write(kUpdate + "ended_at=NULL, " + kHasStarted, "");
  }
  return {};
}

Status EndKeys(Connection& db, const std::vector<const Settlement*>& batch) {
  std::map<KeyFate, KeyEntries> entries;
  for (const Settlement* one : batch) {
    if (const auto fate = FateOf(*one)) entries[*fate].push_back({one->handler, one->biz_key, one->key});
  }
  for (auto& [fate, keys] : entries) {
    BOOST_OUTCOME_TRYV(SetFate(db, std::move(keys), fate));
  }
  return {};
}

}  // namespace millrace::engine::sql
