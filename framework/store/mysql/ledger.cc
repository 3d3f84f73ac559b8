#include "framework/store/mysql/ledger.h"

#include <algorithm>
#include <set>

#include "framework/store/mysql/mysql_task_store.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

struct Running {
  std::vector<const Task*> tasks;
  std::vector<LedgerKey> keys;  // sorted, each once
};

// Which of the tasks still run as claimed; their rows stay locked until the transaction ends.
Result<Running> LockRunning(Session& session, const std::string& incarnation, std::span<const Task> tasks) {
  std::map<std::uint64_t, const Task*> by_id;
  std::vector<std::uint64_t> ids;
  for (const Task& task : tasks) {
    if (task.biz_key.empty()) continue;
    by_id[task.key.id] = &task;
    ids.push_back(task.key.id);
  }
  Running running;
  if (ids.empty()) return running;
  std::set<LedgerKey> keys;
  BOOST_OUTCOME_TRYV(session.Query("SELECT id,attempt FROM " + tasks[0].key.table +
                                       " FORCE INDEX (PRIMARY) WHERE id IN (" + List(Sorted(ids)) +
                                       ") AND state=2 AND claimed_by=" + Quote(incarnation) +
                                       " ORDER BY id FOR UPDATE",
                                   [&](const Row& row) {
                                     const Task* task = by_id[row.Number(1)];
                                     if (task->attempt != row.Number(2)) return;
                                     running.tasks.push_back(task);
                                     keys.insert({task->handler, task->biz_key});
                                   }));
  running.keys.assign(keys.begin(), keys.end());
  return running;
}

// Enters each key that has no entry yet for the first of its tasks.
Status Enter(Session& session, const Running& running) {
  std::map<LedgerKey, TaskKey> first;
  for (const Task* task : running.tasks) first.try_emplace({task->handler, task->biz_key}, task->key);
  std::string rows;
  for (const auto& [key, task] : first) {
    rows += (rows.empty() ? "(" : ",(") + Quote(key.first) + "," + Quote(key.second) + "," +
            Quote(task.table) + "," + std::to_string(task.id) + ",UTC_TIMESTAMP(6))";
  }
  BOOST_OUTCOME_TRYV(
      session.Write("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) VALUES " + rows +
                    " ON DUPLICATE KEY UPDATE task_id=task_id"));
  return {};
}

}  // namespace

std::string KeyCondition(const std::vector<LedgerKey>& keys) {
  std::string text = "(handler,biz_key) IN (";
  for (const LedgerKey& key : keys) {
    if (text.back() != '(') text += ',';
    text += "(" + Quote(key.first) + "," + Quote(key.second) + ")";
  }
  return text + ")";
}

Result<std::map<LedgerKey, LedgerEntry>> LockEntries(Session& session, const std::vector<LedgerKey>& keys) {
  std::map<LedgerKey, LedgerEntry> entries;
  if (keys.empty()) return entries;
  BOOST_OUTCOME_TRYV(
      session.Query("SELECT handler,biz_key,task_table,task_id,ended_at IS NOT "
                    "NULL,COALESCE(keep_until<UTC_TIMESTAMP(6),0) FROM "
                    "tasks_keys FORCE INDEX (PRIMARY) WHERE " +
                        KeyCondition(keys) + " ORDER BY handler,biz_key FOR UPDATE",
                    [&](const Row& row) {
                      LedgerEntry& entry = entries[{row.Text(1), row.Text(2)}];
                      if (const auto table = ParseTableName(row.Text(3)))
                        entry.task = TaskKey{*table, row.Number(4)};
                      entry.holder = row.Text(3) + "/" + std::to_string(row.Number(4));
                      entry.ended = row.Number(5) != 0;
                      entry.expired = row.Number(6) != 0;
                    }));
  return entries;
}

Result<std::vector<TaskKey>> Present(Session& session, const std::vector<TaskKey>& tasks) {
  std::map<TableName, std::vector<std::uint64_t>> tables;
  for (const TaskKey& key : tasks) tables[key.table].push_back(key.id);
  std::vector<TaskKey> present;
  for (const auto& [table, ids] : tables) {
    const std::string list = List(Sorted(ids));
    std::string sql;
    for (const char* pool : {"", "_done", "_failed"}) {
      sql += (sql.empty() ? "SELECT id FROM " : " UNION ALL SELECT id FROM ") + table + pool +
             " WHERE id IN (" + list + ")";
    }
    BOOST_OUTCOME_TRYV(session.Query(sql, [&, &table = table](const Row& row) {
      present.push_back({table, row.Number(1)});
    }));
  }
  return present;
}

Result<std::vector<LedgerKey>> VoidEntries(Session& session,
                                           const std::map<LedgerKey, LedgerEntry>& entries) {
  std::vector<TaskKey> open;
  for (const auto& [key, entry] : entries) {
    if (!entry.ended && !entry.expired && entry.task) open.push_back(*entry.task);
  }
  BOOST_OUTCOME_TRY(present, Present(session, open));
  std::sort(present.begin(), present.end());
  std::vector<LedgerKey> voided;
  for (const auto& [key, entry] : entries) {
    const bool there = entry.task && std::binary_search(present.begin(), present.end(), *entry.task);
    if (entry.expired || (!entry.ended && !there)) voided.push_back(key);
  }
  return voided;
}

Status RemoveEntries(Session& session, const std::vector<LedgerKey>& keys) {
  if (keys.empty()) return {};
  BOOST_OUTCOME_TRYV(
      session.Write("DELETE tasks_keys FROM tasks_keys FORCE INDEX (PRIMARY) WHERE " + KeyCondition(keys)));
  return {};
}

// Those whose keys are theirs already, by a read without locks: a running task's own entry can't be taken
// away, so most batches need no transaction.
Result<std::set<std::uint64_t>> MysqlTaskStore::AlreadyMine(const std::string& incarnation,
                                                            std::span<const Task> tasks) {
  std::vector<std::uint64_t> ids;
  std::map<std::uint64_t, std::uint32_t> attempts;
  for (const Task& task : tasks) {
    ids.push_back(task.key.id);
    attempts[task.key.id] = task.attempt;
  }
  const TableName& table = tasks[0].key.table;
  std::set<std::uint64_t> mine;
  BOOST_OUTCOME_TRYV(
      session_.Query("SELECT t.id,t.attempt FROM " + table +
                         " t FORCE INDEX (PRIMARY) JOIN tasks_keys k ON k.handler=t.handler AND "
                         "k.biz_key=t.biz_key AND k.task_id=t.id AND k.task_table=" +
                         Quote(table) + " WHERE t.id IN (" + List(Sorted(ids)) +
                         ") AND t.state=2 AND t.claimed_by=" + Quote(incarnation),
                     [&](const Row& row) {
                       if (attempts[row.Number(1)] == row.Number(2)) mine.insert(row.Number(1));
                     }));
  return mine;
}

Result<std::vector<KeyVerdict>> MysqlTaskStore::ConfirmKeys(const std::string& incarnation,
                                                            std::span<const Task> tasks) {
  std::vector<KeyVerdict> verdicts;
  if (tasks.empty()) return verdicts;
  BOOST_OUTCOME_TRY(mine, AlreadyMine(incarnation, tasks));
  std::vector<Task> others;
  for (const Task& task : tasks) {
    if (mine.contains(task.key.id)) {
      verdicts.push_back({task.key, true, ""});
    } else {
      others.push_back(task);
    }
  }
  if (others.empty()) return verdicts;
  BOOST_OUTCOME_TRY(entered, EnterKeys(incarnation, others));
  verdicts.insert(verdicts.end(), entered.begin(), entered.end());
  return verdicts;
}

Result<std::vector<KeyVerdict>> MysqlTaskStore::EnterKeys(const std::string& incarnation,
                                                          std::span<const Task> tasks) {
  std::vector<KeyVerdict> verdicts;
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  BOOST_OUTCOME_TRY(running, LockRunning(session_, incarnation, tasks));
  if (running.tasks.empty()) return verdicts;
  BOOST_OUTCOME_TRYV(Enter(session_, running));
  auto entries = LockEntries(session_, running.keys);
  if (!entries) return Fail(entries.error());
  std::map<LedgerKey, LedgerEntry> others = *entries;
  for (const Task* task : running.tasks) {
    const auto found = others.find({task->handler, task->biz_key});
    if (found != others.end() && found->second.task == task->key) others.erase(found);
  }
  BOOST_OUTCOME_TRY(voided, VoidEntries(session_, others));
  if (!voided.empty()) {
    BOOST_OUTCOME_TRYV(RemoveEntries(session_, voided));
    BOOST_OUTCOME_TRYV(Enter(session_, running));
    entries = LockEntries(session_, running.keys);
    if (!entries) return Fail(entries.error());
  }
  BOOST_OUTCOME_TRYV(session_.Commit());
  for (const Task* task : running.tasks) {
    const LedgerEntry& entry = (*entries)[{task->handler, task->biz_key}];
    const bool mine = entry.task == task->key;
    verdicts.push_back({task->key, mine, mine ? "" : entry.holder});
  }
  return verdicts;
}

}  // namespace millrace::engine::mysql
