#include "framework/store/sql/task_store.h"

#include <algorithm>
#include <map>
#include <set>

#include "framework/store/sql/counters.h"
#include "framework/store/sql/keys.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

// Numbers beyond are taken for the nearest that fits.
std::uint32_t Count(const Row& row, unsigned column) {
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(row.Signed(column), 0, 0xFFFF'FFFF));
}

struct Running {
  std::vector<const Task*> tasks;
  std::vector<LedgerKey> keys;  // sorted, each once
};

// Which of the tasks still run as claimed; their rows stay locked until the transaction ends.
Result<Running> LockRunning(Connection& db, std::uint64_t claimer, std::span<const Task> tasks) {
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
  BOOST_OUTCOME_TRYV(db.Query("SELECT id,attempt FROM " + tasks[0].key.table + "$primary WHERE id IN (" +
                                  List(Sorted(ids)) + ") AND state=2 AND claimed_by=? ORDER BY id$lock",
                              {claimer}, [&](const Row& row) {
                                const Task* task = by_id[row.Number(1)];
                                if (task->attempt != row.Number(2)) return;
                                running.tasks.push_back(task);
                                keys.insert({task->handler, task->biz_key});
                              }));
  running.keys.assign(keys.begin(), keys.end());
  return running;
}

// Enters each key that has no entry yet for the first of its tasks.
Status Enter(Connection& db, const Running& running) {
  std::map<LedgerKey, TaskKey> first;
  for (const Task* task : running.tasks) first.try_emplace({task->handler, task->biz_key}, task->key);
  std::vector<Value> values;
  for (const auto& [key, task] : first)
    values.insert(values.end(), {key.first, key.second, task.table, task.id});
  BOOST_OUTCOME_TRYV(
      db.Write("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) VALUES " +
                   Repeat("(?,?,?,?,$now)", first.size()) + "$upsert task_id=task_id",
               Connection::Values(values)));
  return {};
}

// Those whose keys are theirs already, by a read without locks: a running task's own entry can't be taken
// away, so most batches need no transaction.
Result<std::set<std::uint64_t>> AlreadyMine(Connection& db, std::uint64_t claimer,
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
      db.Query("SELECT t.id,t.attempt FROM " + table +
                   " t$primary JOIN tasks_keys k ON k.handler=t.handler AND "
                   "k.biz_key=t.biz_key AND k.task_id=t.id AND k.task_table=? WHERE t.id IN (" +
                   List(Sorted(ids)) + ") AND t.state=2 AND t.claimed_by=?",
               {table, claimer}, [&](const Row& row) {
                 if (attempts[row.Number(1)] == row.Number(2)) mine.insert(row.Number(1));
               }));
  return mine;
}

Result<std::vector<KeyVerdict>> EnterKeys(Connection& db, std::uint64_t claimer,
                                          std::span<const Task> tasks) {
  std::vector<KeyVerdict> verdicts;
  Transaction transaction(db);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  BOOST_OUTCOME_TRY(running, LockRunning(db, claimer, tasks));
  if (running.tasks.empty()) return verdicts;
  BOOST_OUTCOME_TRYV(Enter(db, running));
  BOOST_OUTCOME_TRY(entries, ReadEntries(db, running.keys, "$lock"));
  LedgerEntries others = entries;
  for (const Task* task : running.tasks) {
    const auto found = others.find({task->handler, task->biz_key});
    if (found != others.end() && found->second.task == task->key) others.erase(found);
  }
  const std::size_t held = others.size();
  BOOST_OUTCOME_TRYV(RemoveVoid(db, others));
  if (others.size() < held) {
    BOOST_OUTCOME_TRYV(Enter(db, running));
    BOOST_OUTCOME_TRY(again, ReadEntries(db, running.keys, "$lock"));
    entries = std::move(again);
  }
  BOOST_OUTCOME_TRYV(transaction.Commit());
  for (const Task* task : running.tasks) {
    const LedgerEntry& entry = entries[{task->handler, task->biz_key}];
    const bool mine = entry.task == task->key;
    verdicts.push_back({task->key, mine, mine ? "" : entry.holder});
  }
  return verdicts;
}

// Where somebody enters one of the keys just now, which shows only by its lock: as many of them as there is
// time for.
Result<std::vector<KeyVerdict>> EnterEach(Connection& db, std::uint64_t claimer,
                                          std::span<const Task> tasks) {
  constexpr int kMostWaits = 2;
  std::vector<KeyVerdict> verdicts;
  int waits = 0;
  for (std::size_t i = 0; i < tasks.size() && waits < kMostWaits; ++i) {
    auto entered = EnterKeys(db, claimer, tasks.subspan(i, 1));
    if (!entered && entered.error().code != ErrorCode::Conflict) return Fail(entered.error());
    waits += entered ? 0 : 1;
    if (entered) verdicts.insert(verdicts.end(), entered->begin(), entered->end());
  }
  return verdicts;
}

}  // namespace

std::string TaskColumns(TaskRows rows) {
  const char* claimer = "claimed_by,claimed_at";
  const char* hot = "0,0";
  switch (rows) {
    case TaskRows::Claimed:
      claimer = "'',claimed_at";
      hot = "cancel,0";
      break;
    case TaskRows::Hot:
      claimer =
          "(SELECT i.id FROM millrace_incarnations i WHERE i.number=claimed_by),"
          "CASE WHEN claimed_by=0 THEN NULL ELSE claimed_at END";
      hot = "cancel,claimed_by";
      break;
    case TaskRows::Ended:
      break;
  }
  return std::string(
             "id,slice,state,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,") +
         claimer + ",last_error,progress,created_at," + hot + ",expires_at";
}

Task ReadTask(const TableName& table, const Row& row) {
  Task task;
  task.key = {table, row.Number(1)};
  task.slice = Count(row, 2);
  task.state = static_cast<TaskState>(row.Signed(3));
  task.handler = row.Text(4);
  task.priority = Count(row, 5);
  task.run_at = row.Time(6).value_or(WallTime{});
  task.params = row.Text(7);
  task.biz_key = row.Text(8);
  task.batch = row.Text(9);
  task.failures = Count(row, 10);
  task.attempt = Count(row, 11);
  task.crashes = Count(row, 12);
  task.claimed_by = row.Text(13);
  if (task.claimed_by.empty() && row.Number(19) != kNobody) task.claimed_by = NumberText(row.Number(19));
  task.claimed_at = row.Time(14);
  task.last_error = row.Text(15);
  task.progress = row.Text(16);
  task.created_at = row.Time(17).value_or(WallTime{});
  task.cancel = row.Number(18) != 0;
  task.expires_at = row.Time(20);
  return task;
}

Result<Claimer> SqlTaskStore::ByName(const std::string& incarnation) {
  return claimers_.ByName(db_, incarnation);
}

Result<bool> SqlTaskStore::IsAlive(const Claimer& claimer, std::string_view lock) {
  bool alive = false;
  BOOST_OUTCOME_TRYV(
      db_.Query("SELECT 1 FROM millrace_incarnations WHERE number=? AND dead=0" + std::string(lock),
                {claimer.number}, [&](const Row&) { alive = true; }));
  return alive;
}

// Most rows of a page wait; those that run are few claimers'.
Status SqlTaskStore::NameClaimers(const std::vector<std::uint64_t>& claimers, std::vector<ScanRow>& rows) {
  std::uint64_t last = kNobody;
  std::string name;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (claimers[i] == kNobody) continue;
    if (claimers[i] != last) {
      BOOST_OUTCOME_TRY(found, claimers_.NameOf(db_, claimers[i]));
      name = std::move(found);
      last = claimers[i];
    }
    rows[i].claimed_by = name;
  }
  return {};
}

Result<std::vector<KeyVerdict>> SqlTaskStore::ConfirmKeys(const std::string& incarnation,
                                                          std::span<const Task> tasks) {
  std::vector<KeyVerdict> verdicts;
  if (tasks.empty()) return verdicts;
  BOOST_OUTCOME_TRY(claimer, ByName(incarnation));
  BOOST_OUTCOME_TRY(mine, AlreadyMine(db_, claimer.number, tasks));
  std::vector<Task> others;
  for (const Task& task : tasks) {
    if (mine.contains(task.key.id)) {
      verdicts.push_back({task.key, true, ""});
    } else {
      others.push_back(task);
    }
  }
  if (others.empty()) return verdicts;
  std::vector<LedgerKey> keys;
  for (const Task& task : others) keys.emplace_back(task.handler, task.biz_key);
  BOOST_OUTCOME_TRY(locked, LockedKeys(db_, keys));
  std::erase_if(others, [&](const Task& task) { return locked.contains({task.handler, task.biz_key}); });
  if (others.empty()) return verdicts;
  auto entered = EnterKeys(db_, claimer.number, others);
  if (!entered && entered.error().code == ErrorCode::Conflict && others.size() > 1)
    entered = EnterEach(db_, claimer.number, others);
  if (!entered) return Fail(entered.error());
  verdicts.insert(verdicts.end(), entered->begin(), entered->end());
  return verdicts;
}

Result<std::vector<std::uint64_t>> SqlTaskStore::GreatestIds(std::span<const TableName> tables) {
  std::vector<std::uint64_t> greatest;
  for (const TableName& table : tables) {
    std::uint64_t id = 0;
    BOOST_OUTCOME_TRYV(db_.Query("SELECT MAX(id) FROM " + table, {}, [&](const Row& row) {
      if (!row.Null(1)) id = row.Number(1);
    }));
    greatest.push_back(id);
  }
  return greatest;
}

// A number beyond those that the program knows reads as the largest of them.
Result<std::vector<std::uint64_t>> SqlTaskStore::FailUnclaimed(const ClaimRequest& request,
                                                               const std::string& why) {
  std::vector<std::uint64_t> failed;
  if (request.ids.empty()) return failed;
  Transaction transaction(db_);
  BOOST_OUTCOME_TRYV(transaction.Begin());
  CounterSums sums;
  KeyEntries keys;
  BOOST_OUTCOME_TRYV(db_.Query("SELECT id,handler,biz_key,batch FROM " + request.table +
                                   "$primary WHERE id IN (" + List(Sorted(request.ids)) +
                                   ") AND state=0 AND CASE WHEN attempt>4294967295 THEN 4294967295 ELSE "
                                   "attempt END=? ORDER BY id$free",
                               {request.attempt}, [&](const Row& row) {
                                 failed.push_back(row.Number(1));
                                 sums.Of(request.table, row.Text(2), row.Text(4)).failed += 1;
                                 if (!row.Text(3).empty())
                                   keys.push_back({row.Text(2), row.Text(3), {request.table, row.Number(1)}});
                               }));
  if (failed.empty()) return failed;
  const std::string kept =
      "id,slice,handler,priority,run_at,params,biz_key,batch,failures,attempt,crashes,progress,created_at,"
      "expires_at";
  const std::string in = " WHERE id IN (" + List(failed) + ")";
  BOOST_OUTCOME_TRYV(db_.Write("INSERT INTO " + request.table + "_failed (" + kept +
                                   ",state,last_error,error_class,finished_at) SELECT " + kept +
                                   ",-1,?,?,$now FROM " + request.table + "$primary" + in,
                               {Shorten(why), kUnclaimable}));
  BOOST_OUTCOME_TRYV(db_.Write("$remove(" + request.table + ")" + in));
  BOOST_OUTCOME_TRYV(SetFate(db_, std::move(keys), KeyFate::Fail));
  BOOST_OUTCOME_TRYV(sums.Write(db_, request.incarnation));
  BOOST_OUTCOME_TRYV(transaction.Commit());
  return failed;
}

}  // namespace millrace::engine::sql
