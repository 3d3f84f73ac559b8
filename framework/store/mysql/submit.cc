#include "framework/store/mysql/submit.h"

#include <algorithm>
#include <map>

#include "framework/store/mysql/ledger.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

// Rows of one INSERT; with params at their limit the text stays below the smallest usual max_allowed_packet.
constexpr std::size_t kTextLimit = 2 * 1024 * 1024;

std::string DueAt(const NewTask& task) {
  if (task.run_at) return TimeLiteral(*task.run_at);
  return task.delay ? After(*task.delay) : "UTC_TIMESTAMP(6)";
}

std::string Values(const NewTask& task) {
  return "(" + Quote(task.handler) + "," + Quote(task.params) + "," + QuoteOrNull(task.biz_key) + "," +
         QuoteOrNull(task.batch) + "," + std::to_string(task.priority.value_or(5)) + "," + DueAt(task) + "," +
         (task.held ? "3" : "0") + ",UTC_TIMESTAMP(6))";
}

class Submission {
 public:
  Submission(Session& session, const TableName& table, std::span<const NewTask> tasks)
      : session_(session), table_(table), tasks_(tasks) {
    report_.ids.assign(tasks.size(), 0);
    report_.duplicates.assign(tasks.size(), "");
  }

  Result<SubmitReport> Run() {
    for (const NewTask& task : tasks_) {
      BOOST_OUTCOME_TRYV(Validate(task));
    }
    BOOST_OUTCOME_TRYV(DropTaken());
    BOOST_OUTCOME_TRYV(Insert());
    BOOST_OUTCOME_TRYV(EnterKeys());
    NameTwins();
    report_.added = kept_.size();
    return report_;
  }

 private:
  Status DropTaken();
  Status Insert();
  Status InsertPart(std::size_t from, std::size_t to, const std::string& rows);
  Status EnterKeys();
  void NameTwins();

  Session& session_;
  const TableName& table_;
  const std::span<const NewTask> tasks_;
  SubmitReport report_;
  std::vector<std::size_t> kept_;                           // indices of the tasks that are added
  std::map<LedgerKey, std::size_t> first_;                  // the first task of each key in this batch
  std::vector<std::pair<std::size_t, std::size_t>> twins_;  // a later task and the first with its key
};

Status Submission::DropTaken() {
  std::vector<LedgerKey> keys;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (tasks_[i].biz_key.empty()) continue;
    const auto [at, is_new] = first_.try_emplace({tasks_[i].handler, tasks_[i].biz_key}, i);
    if (!is_new) twins_.emplace_back(i, at->second);
  }
  for (const auto& [key, index] : first_) keys.push_back(key);
  BOOST_OUTCOME_TRY(entries, LockEntries(session_, keys));
  BOOST_OUTCOME_TRY(voided, VoidEntries(session_, entries));
  BOOST_OUTCOME_TRYV(RemoveEntries(session_, voided));
  for (const LedgerKey& key : voided) entries.erase(key);
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
  std::string rows;
  std::size_t from = 0;
  for (std::size_t k = 0; k < kept_.size(); ++k) {
    rows += (rows.empty() ? "" : ",") + Values(tasks_[kept_[k]]);
    if (rows.size() < kTextLimit && k + 1 < kept_.size()) continue;
    BOOST_OUTCOME_TRYV(InsertPart(from, k + 1, rows));
    from = k + 1;
    rows.clear();
  }
  return {};
}

// One INSERT gives its rows ids that rise, but servers may be told to leave gaps, so the ids are read back:
// the rows from the first id on that were made in the same microsecond and have these very contents, in
// order.
Status Submission::InsertPart(std::size_t from, std::size_t to, const std::string& rows) {
  BOOST_OUTCOME_TRYV(
      session_.Write("INSERT INTO " + table_ +
                     " (handler,params,biz_key,batch,priority,run_at,state,created_at) VALUES " + rows));
  const std::uint64_t first = session_.last_insert_id();
  std::size_t k = from;
  BOOST_OUTCOME_TRYV(session_.Query(
      "SELECT id,handler,biz_key,params FROM " + table_ + " FORCE INDEX (PRIMARY) WHERE id>=" +
          std::to_string(first) + " AND created_at=(SELECT created_at FROM " + table_ +
          " WHERE id=" + std::to_string(first) + ") ORDER BY id LIMIT " + std::to_string(2 * (to - from)),
      [&](const Row& row) {
        if (k == to) return;
        const NewTask& task = tasks_[kept_[k]];
        if (row.Text(2) != task.handler || row.Text(3) != task.biz_key || row.Text(4) != task.params) return;
        report_.ids[kept_[k++]] = row.Number(1);
      }));
  if (k == to) return {};
  return Fail(ErrorCode::Internal,
              session_.where() + ": the ids of new tasks can't be read back; nothing was added");
}

Status Submission::EnterKeys() {
  std::string rows;
  for (const auto& [key, index] : first_) {
    if (report_.ids[index] == 0) continue;
    rows += (rows.empty() ? "(" : ",(") + Quote(key.first) + "," + Quote(key.second) + "," + Quote(table_) +
            "," + std::to_string(report_.ids[index]) + ",UTC_TIMESTAMP(6))";
  }
  if (rows.empty()) return {};
  auto entered =
      session_.Write("INSERT INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) VALUES " + rows);
  if (entered) return {};
  if (session_.last_code() != kDuplicateEntry) return Fail(entered.error());
  return Fail(ErrorCode::Conflict,
              session_.where() + ": somebody entered one of the keys at the same moment");
}

void Submission::NameTwins() {
  for (const auto& [later, first] : twins_) {
    if (!report_.duplicates[later].empty()) continue;
    report_.duplicates[later] = ToString(TaskKey{table_, report_.ids[first]});
  }
}

}  // namespace

Result<SubmitReport> RunSubmit(Session& session, const TableName& table, std::span<const NewTask> tasks) {
  return Submission(session, table, tasks).Run();
}

}  // namespace millrace::engine::mysql
