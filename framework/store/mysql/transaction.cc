#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/settle.h"
#include "framework/store/mysql/submit.h"

namespace millrace::mysql {
namespace {

class MysqlTaskTransaction final : public TaskTransaction {
 public:
  // A vanished worker's locks go when the server has heard nothing for the limit and the lease.
  MysqlTaskTransaction(const Endpoint& endpoint, ConnectionPool& pool, Micros limit)
      : session_(endpoint, limit + endpoint.options.lease, &pool, Session::Mode::Manual) {}
  ~MysqlTaskTransaction() override { session_.Rollback(); }

  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override;
  Result<std::size_t> Submit(const std::string& table, std::span<const NewTask> tasks) override;
  TransactionState state() const override { return state_; }
  CommitReport Commit(const std::string& incarnation, std::span<const Settlement> batch) override;
  bool Intact() override;
  void Rollback() override {
    session_.Rollback();
    state_ = TransactionState::Idle;
    deadlocked_ = false;
  }

 private:
  Status Enter();
  Error Note(const Error& error);
  CommitReport GiveUp(const Error& error);

  Session session_;
  TransactionState state_ = TransactionState::Idle;
  bool deadlocked_ = false;  // the server has rolled all of it back, the savepoint too
};

Status MysqlTaskTransaction::Enter() {
  if (state_ == TransactionState::Open) return {};
  if (state_ != TransactionState::Idle) {
    return Fail(ErrorCode::Conflict, session_.where() +
                                         ": an earlier statement of this transaction failed; only a "
                                         "rollback is left");
  }
  Status begun = session_.Begin();
  if (begun) {
    state_ = TransactionState::Open;
  } else {
    state_ = session_.connected() ? TransactionState::Poisoned : TransactionState::Lost;
  }
  return begun;
}

// Any error poisons: what the statement did or did not do is nothing that a handler can judge.
Error MysqlTaskTransaction::Note(const Error& error) {
  if (!session_.connected() && error.code == ErrorCode::Unavailable) {
    state_ = TransactionState::Lost;
  } else if (error.code == ErrorCode::Conflict) {
    state_ = TransactionState::Transient;
    deadlocked_ = session_.last_code() == kDeadlock;
  } else {
    state_ = TransactionState::Poisoned;
  }
  return error;
}

Result<SqlResult> MysqlTaskTransaction::Execute(std::string_view sql, std::span<const SqlValue> values) {
  if (Status open = Enter(); !open) return Fail(open.error());
  auto answer = session_.Bound(sql, values);
  if (!answer) return Fail(Note(answer.error()));
  return answer;
}

Result<std::size_t> MysqlTaskTransaction::Submit(const std::string& table, std::span<const NewTask> tasks) {
  if (Status open = Enter(); !open) return Fail(open.error());
  auto report = RunSubmit(session_, table, tasks);
  if (!report) return Fail(Note(report.error()));
  return report->added;
}

bool MysqlTaskTransaction::Intact() {
  if (state_ == TransactionState::Idle || deadlocked_ || !session_.connected()) return true;
  const auto back = session_.Write("ROLLBACK TO SAVEPOINT millrace");
  return back || session_.last_code() != kNoSuchSavepoint;
}

// Before COMMIT was sent nothing can have been committed, whatever happened.
CommitReport MysqlTaskTransaction::GiveUp(const Error& error) {
  Rollback();
  if (error.code == ErrorCode::Conflict) return {CommitVerdict::Transient, error.message};
  const bool away = error.code == ErrorCode::Unavailable || error.code == ErrorCode::Unknown;
  return {away ? CommitVerdict::Unavailable : CommitVerdict::Broken, error.message};
}

CommitReport MysqlTaskTransaction::Commit(const std::string& incarnation, std::span<const Settlement> batch) {
  if (state_ == TransactionState::Transient)
    return GiveUp({ErrorCode::Conflict, "a lock wait or deadlock before"});
  if (state_ == TransactionState::Poisoned || state_ == TransactionState::Lost) {
    return GiveUp({ErrorCode::Invalid, "a statement of the transaction failed before"});
  }
  if (Status open = Enter(); !open) return GiveUp(open.error());
  if (auto released = session_.Write("RELEASE SAVEPOINT millrace"); !released) {
    if (session_.last_code() != kNoSuchSavepoint) return GiveUp(released.error());
    // The statement's failure has dropped the connection, and with it what came after the early end.
    Rollback();
    return {CommitVerdict::Escaped,
            "the transaction was ended behind the context's back; parts of it may have taken "
            "effect"};
  }
  std::vector<const Settlement*> rows;
  for (const Settlement& one : batch) rows.push_back(&one);
  auto step = RunSettle(session_, incarnation, rows);
  if (!step) return GiveUp(step.error());
  if (*step == SettleStep::Refused) {
    Rollback();
    return {CommitVerdict::Refused, "an attempt is no longer this incarnation's"};
  }
  Status done = session_.Commit();
  if (!done && done.error().code != ErrorCode::Unknown) return GiveUp(done.error());
  state_ = TransactionState::Idle;
  if (done) return {CommitVerdict::Committed, ""};
  Rollback();  // over in any case: nothing of it may colour the next
  return {CommitVerdict::Unknown, done.error().message};
}

}  // namespace

std::unique_ptr<TaskTransaction> OpenTransaction(const Endpoint& endpoint, ConnectionPool& pool,
                                                 Micros limit) {
  return std::make_unique<MysqlTaskTransaction>(endpoint, pool, limit);
}

}  // namespace millrace::mysql
