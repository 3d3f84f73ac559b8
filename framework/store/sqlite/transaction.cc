#include <algorithm>

#include "framework/base/mutex.h"
#include "framework/base/time_text.h"
#include "framework/store/sql/operations.h"
#include "framework/store/sql/sessions.h"
#include "framework/store/sqlite/sessions.h"
#include "framework/store/sqlite/task_store.h"
#include "framework/store/task_transaction.h"

namespace millrace::engine::sqlite {
namespace {

constexpr const char* kEscaped = "the handler ended its transaction: its SQL may have taken effect";

sql::Value BindOf(const SqlValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return *integer;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return nullptr;
}

Result<SqlResult> ReadAll(Rows rows) {
  SqlResult result;
  for (int i = 0; i < rows.Columns(); ++i) result.columns.push_back(rows.ColumnName(i));
  while (rows.Next()) {
    if (result.rows.size() == kMaxSqlRows) {
      return Fail(ErrorCode::Invalid, "the statement gives more than 100000 rows: narrow it, or add a LIMIT");
    }
    auto& row = result.rows.emplace_back();
    result.last_row.clear();
    for (int i = 0; i < rows.Columns(); ++i) result.last_row.push_back(rows.Kind(i));
    for (int i = 0; i < rows.Columns(); ++i) {
      if (rows.IsNull(i)) {
        row.emplace_back(std::nullopt);
      } else if (rows.Kind(i) == SqlKind::Real) {  // SQLite would write fifteen digits
        row.emplace_back(sql::Shortest(rows.Real(i)));
      } else {
        row.emplace_back(rows.Text(i));
      }
    }
  }
  if (rows.error()) return Fail(*rows.error());
  return result;
}

// A handler's own transaction on an SQLite shard: it opens at the first SQL and holds up every other writer,
// so its time is limited. Where the time is over, a statement is interrupted, and a handler that sleeps
// between two statements is evicted by whoever waits to write; its next statement finds the transaction
// poisoned.

// One thread at a time, and beside it the threads that wait at the gate.
class SqliteTaskTransaction final : public TaskTransaction, private GateTenant {
 public:
  SqliteTaskTransaction(File& file, Micros limit) : limit_(limit), claimers_(file.claimers), db_(file) {}
  ~SqliteTaskTransaction() override { Rollback(); }

  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override;
  Result<SubmitReport> Submit(const TableName& table, std::span<const NewTask> tasks) override;
  Result<bool> Announce(const std::string& batch, const BatchPart& part, std::int64_t rows) override;
  TransactionState state() const override;
  CommitReport Commit(const std::string& incarnation, std::span<const Settlement> batch) override;
  Status Mark() override;
  Status Undo() override;
  void Rollback() override;

 private:
  bool TryHold() override { return mutex_.TryLock(); }
  void Evict() override;

  Status Ready() MILLRACE_REQUIRES(mutex_);
  Error Poison(Error error) MILLRACE_REQUIRES(mutex_);
  Error Refused(Error error) MILLRACE_REQUIRES(mutex_);
  Error TimeIsUp() const;
  void Reset() MILLRACE_REQUIRES(mutex_);
  CommitReport End(CommitVerdict verdict, std::string message) MILLRACE_REQUIRES(mutex_);
  CommitReport Verdict(const Error& error) MILLRACE_REQUIRES(mutex_);

  const Micros limit_;
  sql::Claimers& claimers_;
  mutable Mutex mutex_;  // held while the database is used: the connection belongs to one thread at a time
  Session db_ MILLRACE_GUARDED_BY(mutex_);
  TransactionState state_ MILLRACE_GUARDED_BY(mutex_) = TransactionState::Idle;
  BootTime deadline_ MILLRACE_GUARDED_BY(mutex_){};
  std::string why_ MILLRACE_GUARDED_BY(mutex_);  // what poisoned it
  bool marked_ MILLRACE_GUARDED_BY(mutex_) = false;
};

Status SqliteTaskTransaction::Ready() {
  if (state_ == TransactionState::Open) {
    if (BootClock::now() < deadline_) return {};
    return Fail(Poison(TimeIsUp()));
  }
  if (state_ != TransactionState::Idle) {
    return Fail(ErrorCode::Invalid, "the transaction can only be rolled back: " + why_);
  }
  if (Status begun = db_.Begin(); !begun) {
    const Error error = Poison(begun.error());
    state_ = TransactionState::NoConnection;  // whatever it is, nothing was sent
    return Fail(error);
  }
  state_ = TransactionState::Open;
  deadline_ = BootClock::now() + limit_;
  if (auto marked = db_.Run("SAVEPOINT millrace"); !marked) return Fail(Poison(marked.error()));
  db_.SetDeadline(deadline_);
  db_.SetTerm(*this, deadline_);
  return {};
}

Error SqliteTaskTransaction::TimeIsUp() const {
  return {ErrorCode::Cancelled, "the transaction was open for longer than " + FormatDuration(limit_)};
}

void SqliteTaskTransaction::Evict() {
  Poison(TimeIsUp());
  mutex_.Unlock();
}

TransactionState SqliteTaskTransaction::state() const {
  MutexLock lock(mutex_);
  return state_;
}

Error SqliteTaskTransaction::Poison(Error error) {
  state_ = TransactionState::Poisoned;
  if (error.code == ErrorCode::Conflict) state_ = TransactionState::Transient;
  if (error.code == ErrorCode::Unavailable) state_ = TransactionState::Lost;  // a full disk: nobody's fault
  why_ = error.message;
  // Nothing else is left, and the others wait.
  db_.Rollback();
  return error;
}

// A statement that a constraint or the parser refuses has changed nothing: what was sent since the mark can
// be undone by itself.
Error SqliteTaskTransaction::Refused(Error error) {
  const bool by_itself = error.code == ErrorCode::Invalid || error.code == ErrorCode::Internal;
  if (!marked_ || !by_itself || !db_.InTransaction()) return Poison(std::move(error));
  state_ = TransactionState::Poisoned;
  why_ = error.message;
  return error;
}

Status SqliteTaskTransaction::Mark() {
  MutexLock lock(mutex_);
  BOOST_OUTCOME_TRYV(Ready());
  if (marked_) {
    if (auto released = db_.Run("RELEASE SAVEPOINT millrace_task"); !released) {
      return Fail(Poison(released.error()));
    }
  }
  if (auto marked = db_.Run("SAVEPOINT millrace_task"); !marked) return Fail(Poison(marked.error()));
  marked_ = true;
  return {};
}

Status SqliteTaskTransaction::Undo() {
  MutexLock lock(mutex_);
  const bool open = state_ == TransactionState::Open || state_ == TransactionState::Poisoned;
  if (!open || !marked_ || !db_.InTransaction()) {
    return Fail(ErrorCode::Conflict, "only the rollback of all is left: " + why_);
  }
  if (auto back = db_.Run("ROLLBACK TO SAVEPOINT millrace_task"); !back) return Fail(Poison(back.error()));
  state_ = TransactionState::Open;
  return {};
}

Result<SqlResult> SqliteTaskTransaction::Execute(std::string_view sql, std::span<const SqlValue> values) {
  MutexLock lock(mutex_);
  BOOST_OUTCOME_TRYV(Ready());
  std::vector<sql::Value> bound;
  for (const SqlValue& value : values) bound.push_back(BindOf(value));
  const std::int64_t before = db_.TotalChanged();
  auto result = ReadAll(db_.Start(sql, bound.data(), bound.size()));
  if (!result) return Fail(Refused(result.error()));
  if (!db_.InTransaction()) {
    state_ = TransactionState::Escaped;
    why_ = kEscaped;
    return Fail(ErrorCode::Internal, kEscaped);
  }
  // SQLite remembers the count of the last writing statement; a reading one has changed nothing.
  if (db_.TotalChanged() != before) result->affected = static_cast<std::uint64_t>(db_.Changed());
  return result;
}

Result<SubmitReport> SqliteTaskTransaction::Submit(const TableName& table, std::span<const NewTask> tasks) {
  MutexLock lock(mutex_);
  BOOST_OUTCOME_TRYV(Ready());
  auto report = sql::Submit(db_, table, tasks, {.read_standing = true});
  if (!report) return Fail(Refused(report.error()));
  return report;
}

Result<bool> SqliteTaskTransaction::Announce(const std::string& batch, const BatchPart& part,
                                             std::int64_t rows) {
  MutexLock lock(mutex_);
  BOOST_OUTCOME_TRYV(Ready());
  auto open = sql::Announce(db_, batch, part, rows);
  if (!open) return Fail(Refused(open.error()));
  return open;
}

CommitReport SqliteTaskTransaction::End(CommitVerdict verdict, std::string message) {
  Reset();
  return {verdict, std::move(message)};
}

CommitReport SqliteTaskTransaction::Verdict(const Error& error) {
  switch (error.code) {
    case ErrorCode::Conflict:
      return End(CommitVerdict::Transient, error.message);
    case ErrorCode::Unknown:
      return End(CommitVerdict::Unknown, error.message);
    case ErrorCode::Unavailable:
      return End(CommitVerdict::Unavailable, error.message);
    default:
      return End(CommitVerdict::Broken, error.message);
  }
}

CommitReport SqliteTaskTransaction::Commit(const std::string& incarnation,
                                           std::span<const Settlement> batch) {
  MutexLock lock(mutex_);
  if (state_ == TransactionState::Escaped) return End(CommitVerdict::Escaped, kEscaped);
  if (Status ready = Ready(); !ready) {
    return Verdict(ready.error());
  }
  if (auto released = db_.Run("RELEASE SAVEPOINT millrace"); !released) {
    return End(CommitVerdict::Escaped, kEscaped);
  }
  db_.SetDeadline(std::nullopt);
  // Where there is nothing to settle, the database need not be a shard (see handler_kit).
  const auto claimer =
      batch.empty() ? Result<sql::Claimer>(sql::Claimer{}) : claimers_.ByName(db_, incarnation);
  if (!claimer) return Verdict(claimer.error());
  auto report = SettleBatch(db_, *claimer, batch);
  if (!report) return Verdict(report.error());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    if (report->verdicts[i] == SettleVerdict::Refused) {
      return End(CommitVerdict::Refused, "attempt " + std::to_string(batch[i].attempt) + " of " +
                                             ToString(batch[i].key) + " is no longer this worker's");
    }
    if (report->verdicts[i] == SettleVerdict::Broken) return End(CommitVerdict::Broken, report->errors[i]);
  }
  if (Status done = db_.Commit(); !done) return Verdict(done.error());
  state_ = TransactionState::Idle;
  marked_ = false;
  return {};
}

void SqliteTaskTransaction::Rollback() {
  MutexLock lock(mutex_);
  Reset();
}

void SqliteTaskTransaction::Reset() {
  db_.Rollback();
  state_ = TransactionState::Idle;
  why_.clear();
  marked_ = false;
}

}  // namespace

std::unique_ptr<TaskTransaction> OpenTransaction(File& file, Micros limit) {
  return std::make_unique<SqliteTaskTransaction>(file, limit);
}

}  // namespace millrace::engine::sqlite
