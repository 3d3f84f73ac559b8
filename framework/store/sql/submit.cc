#include "framework/store/sql/operations.h"

#include <map>

#include "framework/base/utf8.h"
#include "framework/store/sql/keys.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

Status Check(const NewTask& task) {
  BOOST_OUTCOME_TRYV(Validate(task));
  if (IsUtf8(task.params) && IsUtf8(task.biz_key) && IsUtf8(task.batch)) return {};
  return Fail(ErrorCode::Invalid, "the params, key and batch of a task must be UTF-8");
}

class Submission {
 public:
  Submission(Connection& db, const TableName& table, std::span<const NewTask> tasks)
      : db_(db), table_(table), tasks_(tasks) {
    report_.ids.assign(tasks.size(), 0);
    report_.duplicates.assign(tasks.size(), "");
  }

  Result<SubmitReport> Run() {
    BOOST_OUTCOME_TRYV(CheckAll());
    BOOST_OUTCOME_TRYV(DropTaken());
    BOOST_OUTCOME_TRYV(Insert());
    BOOST_OUTCOME_TRYV(EnterKeys());
    NameTwins();
    report_.added = kept_.size();
    return report_;
  }

 private:
  Status CheckAll();
  Status DropTaken();
  Status Insert();
  Status EnterKeys();
  void NameTwins();

  Connection& db_;
  const TableName& table_;
  const std::span<const NewTask> tasks_;
  SubmitReport report_;
  std::vector<std::size_t> kept_;                           // indices of the tasks that are added
  std::map<LedgerKey, std::size_t> first_;                  // the first task of each key in this batch
  std::vector<std::pair<std::size_t, std::size_t>> twins_;  // a later task and the first with its key
};

Status Submission::CheckAll() {
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    Status valid = Check(tasks_[i]);
    if (valid) continue;
    Error error = valid.error();
    if (tasks_.size() > 1)
      error.message = "task " + std::to_string(i + 1) + " of the batch: " + error.message;
    return Fail(std::move(error));
  }
  return {};
}

Status Submission::DropTaken() {
  std::vector<LedgerKey> keys;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].biz_key.empty()) continue;
    const auto [at, is_new] = first_.try_emplace({tasks_[i].handler, tasks_[i].biz_key}, i);
    if (!is_new) twins_.emplace_back(i, at->second);
  }
  for (const auto& [key, index] : first_) keys.push_back(key);
  BOOST_OUTCOME_TRY(entries, LockEntries(db_, keys));
  BOOST_OUTCOME_TRYV(RemoveVoid(db_, entries));
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (!tasks_[i].biz_key.empty()) {
      const LedgerKey key{tasks_[i].handler, tasks_[i].biz_key};
      if (const auto taken = entries.find(key); taken != entries.end()) {
        report_.duplicates[i] = taken->second.holder;
        continue;
      }
      if (first_.at(key) != i) continue;
    }
    kept_.push_back(i);
  }
  return {};
}

Status Submission::Insert() {
  std::vector<const NewTask*> tasks;
  for (const std::size_t index : kept_) tasks.push_back(&tasks_[index]);
  BOOST_OUTCOME_TRY(ids, db_.Add(table_, tasks));
  for (std::size_t k = 0; k < kept_.size(); ++k) report_.ids[kept_[k]] = ids.at(k);
  return {};
}

Status Submission::EnterKeys() {
  std::vector<Value> values;
  for (const auto& [key, index] : first_) {
    if (report_.ids[index] == 0) continue;
    values.insert(values.end(), {key.first, key.second, table_, report_.ids[index]});
  }
  if (values.empty()) return {};
  auto entered = db_.Write("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) VALUES " +
                               Repeat("(?,?,?,?,$now)", values.size() / 4),
                           Connection::Values(values));
  if (entered) return {};
  if (db_.refusal() != Refusal::Duplicate) return Fail(entered.error());
  return Fail(ErrorCode::Conflict, db_.where() + ": somebody entered one of the keys at the same moment");
}

void Submission::NameTwins() {
  for (const auto& [later, first] : twins_) {
    if (!report_.duplicates[later].empty()) continue;
    report_.duplicates[later] = ToString(TaskKey{table_, report_.ids[first]});
  }
}

}  // namespace

Status CheckBatch(std::size_t rows) {
  if (rows <= kMaxBatchRows) return {};
  return Fail(ErrorCode::Invalid,
              std::to_string(rows) + " tasks in one batch; the limit is " + std::to_string(kMaxBatchRows));
}

Result<SubmitReport> Submit(Connection& db, const TableName& table, std::span<const NewTask> tasks) {
  BOOST_OUTCOME_TRYV(CheckBatch(tasks.size()));
  return Submission(db, table, tasks).Run();
}

}  // namespace millrace::engine::sql
