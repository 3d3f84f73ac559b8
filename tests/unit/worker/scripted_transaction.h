// A transaction that does what the last value of each statement says, over a journal of what took effect.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "framework/store/task_transaction.h"

namespace millrace::engine {

// What took effect, and what the server has in store. Outlives its transactions.
struct Journal {
  std::map<std::string, int> effects;  // by task: statements that were committed
  std::vector<Settlement> settled;     // with their transactions
  std::deque<CommitVerdict> commits;   // what becomes of the next ones; then all are committed
  int refused_connections = 0;         // so many of the next are
  int conflicts = 0;                   // so many of the next statements meet one
};

class ScriptedTransaction final : public TaskTransaction {
 public:
  explicit ScriptedTransaction(Journal& journal) : journal_(journal) {}

  // The first value is the task's name, the second its fault: "", "data" (the server refuses the statement
  // alone), "drop" (and the connection), "lost" (the connection is gone), "escape" (it commits).
  Result<SqlResult> Execute(std::string_view, std::span<const SqlValue> values) override {
    BOOST_OUTCOME_TRYV(Ready());
    const std::string task = std::get<std::string>(values[0]);
    const std::string fault = std::get<std::string>(values[1]);
    if (journal_.conflicts > 0) {
      --journal_.conflicts;
      return Gone(TransactionState::Transient, ErrorCode::Conflict);
    }
    if (fault == "data") {
      state_ = TransactionState::Poisoned;
      return Fail(ErrorCode::Invalid, "data");
    }
    if (fault == "drop") return Gone(TransactionState::Poisoned, ErrorCode::Internal);
    if (fault == "lost") return Gone(TransactionState::Lost, ErrorCode::Unavailable);
    open_.push_back(task);
    if (fault == "escape") {
      TakeEffect();
      return Gone(TransactionState::Escaped, ErrorCode::Internal);
    }
    SqlResult answer;
    answer.affected = 1;
    return answer;
  }
  Result<SubmitReport> Submit(const TableName&, std::span<const NewTask>) override { return SubmitReport{}; }
  TransactionState state() const override { return state_; }
  Status Mark() override {
    BOOST_OUTCOME_TRYV(Ready());
    mark_ = open_.size();
    return {};
  }
  Status Undo() override {
    const bool may = state_ == TransactionState::Open || (state_ == TransactionState::Poisoned && connected_);
    if (!may) return Fail(ErrorCode::Conflict, "only the rollback is left");
    open_.resize(mark_);
    state_ = TransactionState::Open;
    return {};
  }
  CommitReport Commit(const std::string&, std::span<const Settlement> batch) override {
    CommitVerdict verdict = CommitVerdict::Committed;
    if (!journal_.commits.empty()) {
      verdict = journal_.commits.front();
      journal_.commits.pop_front();
    }
    if (state_ != TransactionState::Open) verdict = CommitVerdict::Broken;
    if (verdict == CommitVerdict::Committed || verdict == CommitVerdict::Escaped) TakeEffect();
    if (verdict == CommitVerdict::Committed) {
      journal_.settled.insert(journal_.settled.end(), batch.begin(), batch.end());
    }
    Rollback();
    return {verdict, "as the journal says"};
  }
  void Rollback() override {
    open_.clear();
    mark_ = 0;
    connected_ = true;
    state_ = TransactionState::Idle;
  }

 private:
  Status Ready() {
    if (state_ == TransactionState::Open) return {};
    if (state_ != TransactionState::Idle) return Fail(ErrorCode::Conflict, "only the rollback is left");
    if (journal_.refused_connections > 0) {
      --journal_.refused_connections;
      state_ = TransactionState::NoConnection;
      return Fail(ErrorCode::Unavailable, "no connection");
    }
    state_ = TransactionState::Open;
    return {};
  }
  Failure Gone(TransactionState state, ErrorCode code) {
    open_.clear();
    connected_ = false;
    state_ = state;
    return Fail(code, "the transaction is gone");
  }
  void TakeEffect() {
    for (const std::string& task : open_) ++journal_.effects[task];
    open_.clear();
  }

  Journal& journal_;
  TransactionState state_ = TransactionState::Idle;
  std::vector<std::string> open_;
  std::size_t mark_ = 0;
  bool connected_ = true;
};

}  // namespace millrace::engine
