// A handler's context without a worker: it notes everything, and sends SQL to a store's transaction if there
// is one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/plugin/call_transaction.h"
#include "framework/plugin/handler_instance.h"

namespace millrace::engine {

struct LocalLogLine {
  LogLevel level = LogLevel::Info;
  std::string message;
};

struct LocalStatement {
  std::string sql;
  std::uint64_t affected = 0;
  std::size_t rows = 0;
  std::string error;  // empty: it went well
};

// On the handler's thread, but for ShouldStop and TimeLeft, which are thread-safe.
class LocalContext final : public CallContext {
 public:
  // For a call of so many tasks. `transaction` may be null: SQL and Submit are then refused with a message
  // that says so.
  LocalContext(const Clock& clock, Micros timeout, std::size_t tasks, TaskTransaction* transaction,
               const TableName& table);

  bool ShouldStop() const override;
  Micros TimeLeft() const override;
  void Log(LogLevel level, std::string_view message) override;
  Status SaveProgress(std::size_t index, std::string_view progress) override;
  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override;
  Result<bool> Submit(const NewTask& task) override;
  bool BeginTask(std::size_t index) override;
  void EndTask(bool done) override;
  void BeginTogether() override;
  void Throw() override;

  // Null where there is no database.
  const CallTransaction* transaction() const { return transaction_ ? &*transaction_ : nullptr; }
  const std::vector<LocalLogLine>& log() const { return log_; }
  const std::vector<LocalStatement>& statements() const { return statements_; }
  const std::vector<NewTask>& submitted() const { return submitted_; }
  const std::vector<std::pair<std::size_t, std::string>>& progress() const { return progress_; }

 private:
  const Clock& clock_;
  const BootTime deadline_;
  std::optional<CallTransaction> transaction_;
  std::vector<LocalLogLine> log_;
  std::vector<LocalStatement> statements_;
  std::vector<NewTask> submitted_;
  std::vector<std::pair<std::size_t, std::string>> progress_;
};

}  // namespace millrace::engine
