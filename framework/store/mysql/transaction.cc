#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/settle.h"
#include "framework/store/sql/operations.h"
#include "framework/store/sql/sessions.h"

namespace millrace::engine::mysql {
namespace {

constexpr std::array<std::string_view, 7> kOnRows = {"SELECT",  "INSERT", "UPDATE", "DELETE",
                                                     "REPLACE", "WITH",   "VALUES"};

// The servers' counters of statements that end no transaction, or end it by a rollback.
constexpr std::array<std::string_view, 23> kNoCommit = {"Com_select",
                                                        "Com_insert",
                                                        "Com_insert_select",
                                                        "Com_update",
                                                        "Com_update_multi",
                                                        "Com_delete",
                                                        "Com_delete_multi",
                                                        "Com_replace",
                                                        "Com_replace_select",
                                                        "Com_call_procedure",
                                                        "Com_do",
                                                        "Com_signal",
                                                        "Com_resignal",
                                                        "Com_get_diagnostics",
                                                        "Com_savepoint",
                                                        "Com_release_savepoint",
                                                        "Com_rollback_to_savepoint",
                                                        "Com_rollback",
                                                        "Com_show_status",
                                                        "Com_prepare_sql",
                                                        "Com_execute_sql",
                                                        "Com_execute_immediate",
                                                        "Com_dealloc_sql"};

bool MayCommit(std::string_view counter) {
  return !counter.starts_with("Com_stmt_") &&
         std::find(kNoCommit.begin(), kNoCommit.end(), counter) == kNoCommit.end();
}

// False for a statement that begins like one which reads or changes rows: the servers let nothing within it
// commit. A CALL may end the transaction; one that stands behind a comment or a bracket is taken for one.
bool MayEndTransaction(std::string_view sql) {
  const auto begin = std::find_if(sql.begin(), sql.end(), [](unsigned char c) { return c > ' '; });
  std::string word;
  for (auto c = begin; c != sql.end() && std::isalpha(static_cast<unsigned char>(*c)) != 0; ++c) {
    word += static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  }
  return std::find(kOnRows.begin(), kOnRows.end(), word) == kOnRows.end();
}

// The number of statements of this connection so far, those within procedures included, that could have
// committed: all but the few that are known not to.
Result<std::uint64_t> CountCommits(Session& session) {
  std::uint64_t count = 0;
  BOOST_OUTCOME_TRYV(session.Query("SHOW SESSION STATUS LIKE 'Com\\_%'", [&](const Row& row) {
    if (MayCommit(row.Text(1))) count += row.Number(2);
  }));
  return count;
}

class MysqlTaskTransaction final : public TaskTransaction {
 public:
  // A vanished worker's locks go when the server has heard nothing for the limit and the lease.
  MysqlTaskTransaction(const Endpoint& endpoint, ConnectionPool& pool, sql::Claimers& claimers, Micros limit)
      : claimers_(claimers),
        session_(endpoint, limit + endpoint.options.lease, &pool, Session::Mode::Manual) {}
  ~MysqlTaskTransaction() override { session_.Rollback(); }

  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override;
  Result<SubmitReport> Submit(const TableName& table, std::span<const NewTask> tasks) override;
  Result<bool> Announce(const std::string& batch, const BatchPart& part, std::int64_t rows) override;
  TransactionState state() const override { return state_; }
  CommitReport Commit(const std::string& incarnation, std::span<const Settlement> batch) override;
  Status Mark() override;
  Status Undo() override;
  void Rollback() override {
    session_.Rollback();
    state_ = TransactionState::Idle;
  }

 private:
  // What a statement that may end the transaction did to it.
  enum class After {
    GoesOn,
    RolledBack,  // for certain: nothing that was counted could have committed
    InDoubt,
  };

  Status Enter();
  Error Note(const Error& error);
  Result<SqlResult> ExecuteInspected(std::string_view sql, std::span<const SqlValue> values);
  After Inspect(std::string_view sql, std::span<const SqlValue> values, Result<SqlResult>& answer);
  bool EndedBefore() const { return session_.last_code() == kNoSuchSavepoint; }
  CommitReport GiveUp(const Error& error);

  sql::Claimers& claimers_;
  Session session_;
  TransactionState state_ = TransactionState::Idle;
};

constexpr const char* kEscaped =
    "the transaction was ended behind the context's back; parts of it may have taken effect";

Status MysqlTaskTransaction::Enter() {
  if (state_ == TransactionState::Open) return {};
  if (state_ != TransactionState::Idle) {
    return Fail(ErrorCode::Conflict, session_.where() +
                                         ": an earlier statement of this transaction failed; only a "
                                         "rollback is left");
  }
  Status begun = session_.Begin();
  state_ = begun ? TransactionState::Open : TransactionState::NoConnection;
  return begun;
}

// Any error poisons: what the statement did or did not do is nothing that a handler can judge.
Error MysqlTaskTransaction::Note(const Error& error) {
  if (!session_.connected() && error.code == ErrorCode::Unavailable) {
    state_ = TransactionState::Lost;
  } else if (error.code == ErrorCode::Conflict) {
    state_ = TransactionState::Transient;
  } else {
    state_ = TransactionState::Poisoned;
  }
  return error;
}

Result<SqlResult> MysqlTaskTransaction::Execute(std::string_view sql, std::span<const SqlValue> values) {
  BOOST_OUTCOME_TRYV(Enter());
  if (MayEndTransaction(sql)) return ExecuteInspected(sql, values);
  auto answer = session_.Bound(sql, values);
  if (!answer) return Fail(Note(answer.error()));
  return answer;
}

Result<SqlResult> MysqlTaskTransaction::ExecuteInspected(std::string_view sql,
                                                         std::span<const SqlValue> values) {
  Result<SqlResult> answer;
  const After after = Inspect(sql, values, answer);
  if (after == After::GoesOn && answer) return answer;
  Error error = answer ? Error{ErrorCode::Internal, session_.where() + ": " + kEscaped} : answer.error();
  if (after == After::RolledBack && answer) {
    error = {ErrorCode::Internal, session_.where() + ": the statement has rolled the transaction back"};
  }
  Note(error);
  if (after == After::InDoubt) state_ = TransactionState::Escaped;
  return Fail(std::move(error));
}

// An early end is seen at once, by a savepoint that is gone. A server that rolls back by itself (a deadlock)
// takes the savepoint with it, too; but it counts nothing then that could have committed.
MysqlTaskTransaction::After MysqlTaskTransaction::Inspect(std::string_view sql,
                                                          std::span<const SqlValue> values,
                                                          Result<SqlResult>& answer) {
  const Session::Inspection inspection(session_);
  const auto before = CountCommits(session_);
  const auto marked = before ? session_.Write("SAVEPOINT millrace_call") : before;
  if (!marked) {
    answer = Fail(marked.error());
    return After::GoesOn;
  }
  answer = session_.Bound(sql, values);
  if (!session_.connected()) return After::InDoubt;
  if (session_.Write("RELEASE SAVEPOINT millrace_call")) return After::GoesOn;
  const auto now = CountCommits(session_);
  return now && *now == *before ? After::RolledBack : After::InDoubt;
}

Result<SubmitReport> MysqlTaskTransaction::Submit(const TableName& table, std::span<const NewTask> tasks) {
  BOOST_OUTCOME_TRYV(Enter());
  auto report = sql::Submit(session_, table, tasks, {.read_standing = true});
  if (!report) return Fail(Note(report.error()));
  return report;
}

Result<bool> MysqlTaskTransaction::Announce(const std::string& batch, const BatchPart& part,
                                            std::int64_t rows) {
  BOOST_OUTCOME_TRYV(Enter());
  auto open = sql::Announce(session_, batch, part, rows);
  if (!open) return Fail(Note(open.error()));
  return open;
}

Status MysqlTaskTransaction::Mark() {
  BOOST_OUTCOME_TRYV(Enter());
  if (auto marked = session_.Write("SAVEPOINT millrace_task"); !marked) return Fail(Note(marked.error()));
  return {};
}

Status MysqlTaskTransaction::Undo() {
  const bool refused_alone = state_ == TransactionState::Poisoned && session_.connected();
  if (state_ != TransactionState::Open && !refused_alone) {
    return Fail(ErrorCode::Conflict, session_.where() + ": only the rollback of all is left");
  }
  if (auto back = session_.Write("ROLLBACK TO SAVEPOINT millrace_task"); !back) {
    Error error = Note(back.error());
    if (EndedBefore()) state_ = TransactionState::Escaped;
    return Fail(std::move(error));
  }
  state_ = TransactionState::Open;
  return {};
}

// Before COMMIT was sent nothing can have been committed, whatever happened. What the server does not let us
// do is no fault of the task, which has done its part.
CommitReport MysqlTaskTransaction::GiveUp(const Error& error) {
  Rollback();
  if (error.code == ErrorCode::Conflict) return {CommitVerdict::Transient, error.message};
  const bool away = error.code == ErrorCode::Unavailable || error.code == ErrorCode::Unknown ||
                    error.code == ErrorCode::Denied;
  return {away ? CommitVerdict::Unavailable : CommitVerdict::Broken, error.message};
}

CommitReport MysqlTaskTransaction::Commit(const std::string& incarnation, std::span<const Settlement> batch) {
  if (state_ == TransactionState::Transient)
    return GiveUp({ErrorCode::Conflict, "a lock wait or deadlock before"});
  if (state_ == TransactionState::Poisoned || state_ == TransactionState::Lost) {
    return GiveUp({ErrorCode::Invalid, "a statement of the transaction failed before"});
  }
  if (state_ == TransactionState::Escaped) {
    Rollback();
    return {CommitVerdict::Escaped, kEscaped};
  }
  if (state_ == TransactionState::NoConnection) {
    return GiveUp({ErrorCode::Unavailable, "no connection could be had for it"});
  }
  // That none can be had says nothing of the task, whatever the reason.
  if (Status open = Enter(); !open) return GiveUp({ErrorCode::Unavailable, open.error().message});
  if (auto released = session_.Write("RELEASE SAVEPOINT millrace"); !released) {
    if (!EndedBefore()) return GiveUp(released.error());
    // The statement's failure has dropped the connection, and with it what came after the early end.
    Rollback();
    return {CommitVerdict::Escaped, kEscaped};
  }
  std::vector<const Settlement*> rows;
  for (const Settlement& one : batch) rows.push_back(&one);
  // Where there is nothing to settle, the database need not be a shard (see handler_kit).
  const auto claimer =
      batch.empty() ? Result<sql::Claimer>(sql::Claimer{}) : claimers_.ByName(session_, incarnation);
  if (!claimer) return GiveUp(claimer.error());
  auto step = RunSettle(session_, *claimer, rows);
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
                                                 sql::Claimers& claimers, Micros limit) {
  return std::make_unique<MysqlTaskTransaction>(endpoint, pool, claimers, limit);
}

}  // namespace millrace::engine::mysql
