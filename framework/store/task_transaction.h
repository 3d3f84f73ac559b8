// A handler's own transaction: its SQL and the settle of its tasks commit together or not at all.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "framework/base/result.h"
#include "framework/store/batch_store.h"
#include "framework/store/task_operations.h"
#include "framework/store/task_store.h"
#include "framework/task/task.h"
#include "framework/task/transaction_policy.h"

namespace millrace::engine {

using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;  // monostate: NULL

// What the database compares a value as, which its text does not tell.
enum class SqlKind {
  Null,
  Exact,  // a whole number or a decimal
  Real,   // a floating-point number
  Text,   // by a collation
  Bytes,
  Date,
  Time,  // with its date
  Span,  // a time of day, or a length
  Other,
};

using SqlCells = std::vector<std::optional<std::string>>;  // NULL: nullopt

struct SqlResult {
  std::vector<std::string> columns;
  std::vector<SqlCells> rows;  // at most kMaxSqlRows
  std::uint64_t affected = 0;
  std::vector<SqlKind> last_row;  // of its values; empty where there is none
};
inline constexpr std::size_t kMaxSqlRows = 100'000;

struct CommitReport {
  CommitVerdict verdict = CommitVerdict::Committed;
  std::string message;  // why, where the verdict is not Committed
};

// One connection, one thread at a time. The statements are bound, never pasted together: `?` stands for a
// value. A statement of transaction control or DDL is the caller's to refuse (see
// framework/store/sql_guard.h).
class TaskTransaction {
 public:
  virtual ~TaskTransaction() = default;

  // The first statement begins the transaction. After an error state() says what is left. A statement that
  // may end the transaction (a CALL) is looked into at once: if it did, or nobody can know, that is an error
  // and the state Escaped.
  virtual Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) = 0;
  // Adds tasks within the transaction, as TaskOperations::Submit does.
  virtual Result<SubmitReport> Submit(const TableName& table, std::span<const NewTask> tasks) = 0;
  // Announces rows of a batch whose row stands here, as BatchStore::Announce does: they come with the commit.
  virtual Result<bool> Announce(const std::string& batch, const BatchPart&, std::int64_t) {
    return Fail(ErrorCode::Internal, "no batch stands here: " + batch);
  }
  virtual TransactionState state() const = 0;

  // What follows can be undone by itself, until the next Mark. Begins the transaction where it is Idle.
  virtual Status Mark() = 0;
  // Takes back what was sent since the last Mark. Open again, also after a statement that only the database's
  // rules refused. Otherwise an error, and the state stays: only the rollback of all is left.
  virtual Status Undo() = 0;

  // Settles and commits. Afterwards state() is Idle, whatever the verdict.
  virtual CommitReport Commit(const std::string& incarnation, std::span<const Settlement> batch) = 0;
  // Never fails: a connection that can't roll back is dropped.
  virtual void Rollback() = 0;
};

}  // namespace millrace::engine
