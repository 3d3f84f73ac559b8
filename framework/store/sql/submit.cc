// The rule for keys, in whoever's transaction: framework/producer/README.md says why the statements are
// these.
#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "framework/base/utf8.h"
#include "framework/store/sql/keys.h"
#include "framework/store/sql/operations.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::sql {
namespace {

Status Check(const NewTask& task) {
  BOOST_OUTCOME_TRYV(Validate(task));
  if (IsUtf8(task.params) && IsUtf8(task.biz_key) && IsUtf8(task.batch)) return {};
  return Fail(ErrorCode::Invalid, "the params, key and batch of a task must be UTF-8");
}

Status CheckAll(std::span<const NewTask> tasks) {
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    Status valid = Check(tasks[i]);
    if (valid) continue;
    return Fail(OfTask(tasks.size() > 1 ? i + 1 : 0, valid.error()));
  }
  return {};
}

LedgerKey KeyOf(const NewTask& task) { return {task.handler, task.biz_key}; }

// At most kMaxBatchRows tasks, which are valid. `first`: the place in its batch of the first, as OfTask has
// it.
class Submission {
 public:
  Submission(Connection& db, const TableName& table, std::span<const NewTask> tasks, std::size_t first)
      : db_(db), table_(table), tasks_(tasks), first_(first) {
    report_.ids.assign(tasks.size(), 0);
    report_.duplicates.assign(tasks.size(), "");
    report_.standing.assign(tasks.size(), "");
  }

  Result<SubmitReport> Run(const SubmitWay& way) {
    FindTwins();
    if (way.look_first) {
      BOOST_OUTCOME_TRYV(LeaveOutTaken());
    }
    BOOST_OUTCOME_TRYV(Insert());
    BOOST_OUTCOME_TRYV(EnterKeys());
    NameTwins();
    if (way.read_standing) {
      BOOST_OUTCOME_TRYV(ReadStanding());
    }
    return std::move(report_);
  }

 private:
  bool IsTaken(std::size_t index) const { return !report_.duplicates[index].empty(); }
  std::vector<LedgerKey> KeysOf(const std::vector<std::size_t>& indices) const;
  void FindTwins();
  Status LeaveOutTaken();
  Status Insert();
  Status EnterKeys();
  Result<std::size_t> Enter(const std::vector<std::size_t>& indices);
  Status GiveWay(std::vector<std::size_t> entered);
  Status TakeBack(const std::vector<std::size_t>& indices);
  void NameTwins();
  Status ReadStanding();

  Connection& db_;
  const TableName& table_;
  const std::span<const NewTask> tasks_;
  const std::size_t first_;
  SubmitReport report_;
  std::vector<std::size_t> keyed_;  // the first task of each key, in the order of the keys
  std::vector<std::pair<std::size_t, std::size_t>> twins_;  // a later task and the first with its key
};

std::vector<LedgerKey> Submission::KeysOf(const std::vector<std::size_t>& indices) const {
  std::vector<LedgerKey> keys;
  for (const std::size_t index : indices) keys.push_back(KeyOf(tasks_[index]));
  return keys;
}

void Submission::FindTwins() {
  std::vector<std::size_t> sorted;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (!tasks_[i].biz_key.empty()) sorted.push_back(i);
  }
  const auto key = [this](std::size_t index) {
    return std::tie(tasks_[index].handler, tasks_[index].biz_key);
  };
  std::sort(sorted.begin(), sorted.end(),
            [&](std::size_t a, std::size_t b) { return std::pair(key(a), a) < std::pair(key(b), b); });
  for (const std::size_t index : sorted) {
    if (!keyed_.empty() && key(keyed_.back()) == key(index)) {
      twins_.emplace_back(index, keyed_.back());
    } else {
      keyed_.push_back(index);
    }
  }
}

// A hint, which spares those that are there already an INSERT and a DELETE.
Status Submission::LeaveOutTaken() {
  BOOST_OUTCOME_TRY(entries, ReadEntries(db_, KeysOf(keyed_), ""));
  BOOST_OUTCOME_TRY(voided, FindVoid(db_, entries));
  for (const LedgerKey& key : voided) entries.erase(key);
  for (const std::size_t index : keyed_) {
    const auto taken = entries.find(KeyOf(tasks_[index]));
    if (taken != entries.end()) report_.duplicates[index] = taken->second.holder;
  }
  std::erase_if(keyed_, [this](std::size_t index) { return IsTaken(index); });
  return {};
}

Status Submission::Insert() {
  std::vector<bool> out(tasks_.size());
  for (const auto& [later, first] : twins_) out[later] = true;
  std::vector<std::size_t> added;
  std::vector<std::size_t> places;
  std::vector<const NewTask*> tasks;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (out[i] || IsTaken(i)) continue;
    added.push_back(i);
    places.push_back(first_ + i);
    tasks.push_back(&tasks_[i]);
  }
  BOOST_OUTCOME_TRY(ids, AddTasks(db_, table_, tasks, places));
  for (std::size_t k = 0; k < added.size(); ++k) report_.ids[added[k]] = ids.at(k);
  report_.added = added.size();
  return {};
}

// How many of the keys were new. In their order, so that two who enter the same keys wait, and do not lock
// each other out.
Result<std::size_t> Submission::Enter(const std::vector<std::size_t>& indices) {
  std::vector<Value> values;
  for (const std::size_t index : indices)
    values.insert(values.end(), {tasks_[index].handler, tasks_[index].biz_key, table_, report_.ids[index]});
  return db_.Write("$enter INTO tasks_keys (handler,biz_key,task_table,task_id,entered_at) VALUES " +
                       Repeat("(?,?,?,?,$now)", indices.size()),
                   Connection::Values(values));
}

Status Submission::EnterKeys() {
  if (keyed_.empty()) return {};
  BOOST_OUTCOME_TRY(entered, Enter(keyed_));
  return entered == keyed_.size() ? Status() : GiveWay(keyed_);
}

// Of those that were not all new: what is void is taken over, and who has come too late is taken back.
Status Submission::GiveWay(std::vector<std::size_t> entered) {
  BOOST_OUTCOME_TRY(entries, ReadEntries(db_, KeysOf(entered), "$share"));
  const auto is_mine = [&](std::size_t index) {
    return entries.at(KeyOf(tasks_[index])).task == TaskKey{table_, report_.ids[index]};
  };
  if (entries.size() == entered.size()) {
    std::vector<std::size_t> others;
    for (const std::size_t index : entered) {
      if (is_mine(index)) {
        entries.erase(KeyOf(tasks_[index]));
      } else {
        others.push_back(index);
      }
    }
    BOOST_OUTCOME_TRYV(RemoveVoid(db_, entries));
    std::vector<std::size_t> freed;
    for (const std::size_t index : others) {
      const auto taken = entries.find(KeyOf(tasks_[index]));
      if (taken == entries.end()) {
        freed.push_back(index);
      } else {
        report_.duplicates[index] = taken->second.holder;
      }
    }
    std::erase_if(others, [this](std::size_t index) { return !IsTaken(index); });
    BOOST_OUTCOME_TRYV(TakeBack(others));
    if (freed.empty()) return {};
    BOOST_OUTCOME_TRY(taken_over, Enter(freed));
    if (taken_over == freed.size()) return {};
  }
  return Fail(ErrorCode::Conflict,
              db_.where() + ": somebody entered or freed one of the keys at the same moment");
}

Status Submission::TakeBack(const std::vector<std::size_t>& indices) {
  if (indices.empty()) return {};
  std::vector<std::uint64_t> ids;
  for (const std::size_t index : indices) ids.push_back(std::exchange(report_.ids[index], 0));
  report_.added -= ids.size();
  BOOST_OUTCOME_TRYV(db_.Write("$remove(" + table_ + ") WHERE id IN (" + List(Sorted(ids)) + ")"));
  return {};
}

void Submission::NameTwins() {
  for (const auto& [later, first] : twins_) {
    report_.duplicates[later] =
        IsTaken(first) ? report_.duplicates[first] : ToString(TaskKey{table_, report_.ids[first]});
  }
}

// One statement for each table with holders, by their ids. One that was dropped has no params any more; its
// keys stay taken.
Status Submission::ReadStanding() {
  std::map<TableName, std::map<std::uint64_t, std::vector<std::size_t>>> holders;
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    if (!IsTaken(i)) continue;
    const auto holder = ParseTaskName(report_.duplicates[i], {.shard = "here", .key = {}});
    if (holder) holders[holder->key.table][holder->key.id].push_back(i);
  }
  std::set<TableName> there;
  for (const auto& [table, by_id] : holders) {
    if (table != table_) there.insert(table);
  }
  BOOST_OUTCOME_TRYV(KeepKnown(db_, there));
  there.insert(table_);  // or there is nothing to submit to
  std::erase_if(holders, [&](const auto& entry) { return !there.contains(entry.first); });
  for (const auto& [table, by_id] : holders) {
    std::vector<std::uint64_t> ids;
    for (const auto& [id, indices] : by_id) ids.push_back(id);
    const std::string in = "$primary WHERE id IN (" + List(ids) + ")";
    const std::string next = " UNION ALL SELECT id,params FROM ";
    BOOST_OUTCOME_TRYV(db_.Query(
        "SELECT id,params FROM " + table + in + next + table + "_done" + in + next + table + "_failed" + in,
        {}, [this, &found = by_id](const Row& row) {
          for (const std::size_t index : found.at(row.Number(1))) {
            std::string params = row.Text(2);
            if (params != tasks_[index].params) report_.standing[index] = std::move(params);
          }
        }));
  }
  return {};
}

}  // namespace

Error OfTask(std::size_t place, Error error) {
  if (place > 0) error.message = "task " + std::to_string(place) + " of the batch: " + error.message;
  return error;
}

Status CheckBatch(std::size_t rows, std::size_t limit) {
  if (rows <= limit) return {};
  return Fail(ErrorCode::Invalid,
              std::to_string(rows) + " tasks in one batch; the limit is " + std::to_string(limit));
}

Result<SubmitReport> Submit(Connection& db, const TableName& table, std::span<const NewTask> tasks,
                            SubmitWay way) {
  BOOST_OUTCOME_TRYV(CheckBatch(tasks.size(), kMaxSubmitRows));
  BOOST_OUTCOME_TRYV(CheckAll(tasks));
  SubmitReport all;
  std::size_t first = tasks.size() > 1 ? 1 : 0;
  while (!tasks.empty()) {
    const auto part = tasks.first(std::min(tasks.size(), kMaxBatchRows));
    tasks = tasks.subspan(part.size());
    BOOST_OUTCOME_TRY(report, Submission(db, table, part, first).Run(way));
    first += part.size();
    all.added += report.added;
    all.ids.insert(all.ids.end(), report.ids.begin(), report.ids.end());
    all.duplicates.insert(all.duplicates.end(), std::make_move_iterator(report.duplicates.begin()),
                          std::make_move_iterator(report.duplicates.end()));
    all.standing.insert(all.standing.end(), std::make_move_iterator(report.standing.begin()),
                        std::make_move_iterator(report.standing.end()));
  }
  return all;
}

}  // namespace millrace::engine::sql
