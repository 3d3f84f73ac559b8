// One call of a handler inside a worker: its stop token and deadline, and its tasks' own transaction.
#pragma once

#include <span>
#include <string>

#include "framework/mill/attempt.h"
#include "framework/plugin/call_transaction.h"
#include "framework/plugin/handler_instance.h"

namespace millrace::engine {

// Used on the handler's thread alone, but for ShouldStop and TimeLeft.
class WorkerContext final : public CallContext {
 public:
  // `attempts` are of one shard, and not empty.
  WorkerContext(const Clock& clock, std::span<const AttemptPtr> attempts, TaskTransaction& transaction,
                BootTime deadline);

  bool ShouldStop() const override;
  Micros TimeLeft() const override;
  void Log(LogLevel level, std::string_view message) override;
  Status SaveProgress(std::size_t index, std::string_view progress) override;
  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override {
    return transaction_.Execute(sql, values);
  }
  Result<bool> Submit(const NewTask& task) override { return transaction_.Submit(task); }
  bool BeginTask(std::size_t index) override { return transaction_.BeginTask(index); }
  void EndTask(bool done) override { transaction_.EndTask(done); }
  void BeginTogether() override { transaction_.BeginTogether(); }
  void Throw() override { transaction_.Throw(); }

  const CallTransaction& transaction() const { return transaction_; }

 private:
  const Clock& clock_;
  const std::span<const AttemptPtr> attempts_;
  CallTransaction transaction_;
  const BootTime deadline_;
};

}  // namespace millrace::engine
