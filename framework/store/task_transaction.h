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
#include "framework/store/task_store.h"
#include "framework/task/outcome.h"

namespace millrace {

using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;  // monostate: NULL

struct SqlResult {
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<std::string>>> rows;  // NULL: nullopt. At most kMaxSqlRows rows
  std::uint64_t affected = 0;
};
inline constexpr std::size_t kMaxSqlRows = 100'000;

enum class TransactionState {
  Idle,       // nothing begun
  Open,       // the handler's SQL is under way
  Transient,  // a lock wait or deadlock: only Rollback is left; the handler may be run again, uncounted
  Poisoned,   // any other SQL error: only Rollback is left
  Lost,       // the connection is gone and nothing was committed
};

enum class CommitVerdict {
  Committed,
  Refused,    // an attempt was no longer ours: rolled back
  Transient,  // a lock wait or deadlock: rolled back
  Escaped,    // the transaction had been ended behind our back: parts may have taken effect; do not run again
  Broken,  // the database refuses it: the settle's data, a constraint, its time: rolled back, would be again
  Unavailable,  // rolled back, or never arrived: nothing was committed
  Unknown,      // the connection was lost under COMMIT: read back with TaskStore::StillRunning
};

struct CommitReport {
  CommitVerdict verdict = CommitVerdict::Committed;
  std::string message;  // why, where the verdict is not Committed
};

// One connection, one thread at a time. The statements are bound, never pasted together: `?` stands for a
// value. A statement of transaction control or DDL is the caller's to refuse (see plugin/sql_guard.h).
class TaskTransaction {
 public:
  virtual ~TaskTransaction() = default;

  // The first statement begins the transaction and sets the savepoint. After an error state() says what is
  // left.
  virtual Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) = 0;
  // Adds tasks within the transaction; returns how many were new (others: key taken).
  virtual Result<std::size_t> Submit(const std::string& table, std::span<const NewTask> tasks) = 0;
  virtual TransactionState state() const = 0;

  // Releases the savepoint, settles, commits. Afterwards state() is Idle, whatever the verdict.
  virtual CommitReport Commit(const std::string& incarnation, std::span<const Settlement> batch) = 0;
  // Is it still the transaction that was begun? Ask before a rollback. False: it was ended behind our back (a
  // procedure that commits), and parts of it may have taken effect. True where nobody can know any more.
  virtual bool Intact() = 0;
  // Never fails: a connection that can't roll back is dropped.
  virtual void Rollback() = 0;
};

}  // namespace millrace
