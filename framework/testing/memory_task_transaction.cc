#include "framework/testing/memory_task_transaction.h"

#include <algorithm>

#include "framework/testing/memory_changes.h"

namespace millrace::engine {

Result<SqlResult> MemoryTaskTransaction::Execute(std::string_view, std::span<const SqlValue>) {
  state_ = TransactionState::Poisoned;
  return Fail(ErrorCode::Invalid, "the memory store runs no SQL");
}

Result<std::size_t> MemoryTaskTransaction::Replay(MemoryState& state) const {
  std::size_t added = 0;
  for (const Staged& batch : staged_) {
    BOOST_OUTCOME_TRY(report, SubmitTo(state, batch.table, batch.tasks, shard_.clock.WallNow()));
    added = report.added;
  }
  return added;
}

Result<std::size_t> MemoryTaskTransaction::Submit(const TableName& table, std::span<const NewTask> tasks) {
  if (state_ == TransactionState::Poisoned) {
    return Fail(ErrorCode::Invalid, "the transaction can only be rolled back");
  }
  staged_.push_back({table, {tasks.begin(), tasks.end()}});
  MutexLock lock(shard_.mutex);
  MemoryState copy = shard_.state;
  auto added = Replay(copy);
  state_ = added ? TransactionState::Open : TransactionState::Poisoned;
  return added;
}

CommitReport MemoryTaskTransaction::Commit(const std::string& incarnation,
                                           std::span<const Settlement> batch) {
  CommitReport report;
  {
    MutexLock lock(shard_.mutex);
    MemoryState copy = shard_.state;
    const bool ready = state_ != TransactionState::Poisoned && Replay(copy);
    const auto settled = SettleIn(copy, incarnation, batch, shard_.clock.WallNow());
    const auto all = [&](SettleVerdict verdict) {
      return std::count(settled.verdicts.begin(), settled.verdicts.end(), verdict) ==
             static_cast<std::ptrdiff_t>(batch.size());
    };
    if (!ready) {
      report = {CommitVerdict::Unavailable, "the transaction can only be rolled back"};
    } else if (!all(SettleVerdict::Settled)) {
      report = {CommitVerdict::Refused, "an attempt is no longer this incarnation's"};
    } else {
      shard_.state = std::move(copy);
    }
  }
  Rollback();
  return report;
}

Status MemoryTaskTransaction::Mark() {
  if (state_ == TransactionState::Poisoned) {
    return Fail(ErrorCode::Invalid, "the transaction can only be rolled back");
  }
  state_ = TransactionState::Open;
  mark_ = staged_.size();
  return {};
}

Status MemoryTaskTransaction::Undo() {
  if (mark_ < staged_.size())
    staged_.erase(staged_.begin() + static_cast<std::ptrdiff_t>(mark_), staged_.end());
  state_ = TransactionState::Open;
  return {};
}

void MemoryTaskTransaction::Rollback() {
  mark_ = 0;
  staged_.clear();
  state_ = TransactionState::Idle;
}

}  // namespace millrace::engine
