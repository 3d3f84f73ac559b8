// One call of a handler inside a worker: its stop token and deadline, and its tasks' own transaction.
#pragma once

#include <span>
#include <string>

#include "framework/plugin/handler_instance.h"
#include "framework/worker/flight.h"

namespace millrace {

// Used on the handler's thread alone, but for ShouldStop and TimeLeft.
class Call final : public CallContext {
 public:
  // `flights` are of one shard, and not empty.
  Call(const Clock& clock, std::span<const FlightPtr> flights, TaskTransaction& transaction,
       BootTime deadline);

  bool ShouldStop() const override;
  Micros TimeLeft() const override;
  void Log(LogLevel level, std::string_view message) override;
  Status SaveProgress(std::size_t index, std::string_view progress) override;
  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override;
  Result<bool> Submit(const NewTask& task) override;

  // The first error of the transaction, for the attempt's message; empty if there was none.
  const std::string& sql_error() const { return sql_error_; }

 private:
  template <class T>
  Result<T> Noted(Result<T> result);

  const Clock& clock_;
  const std::span<const FlightPtr> flights_;
  TaskTransaction& transaction_;
  const BootTime deadline_;
  std::string sql_error_;
};

}  // namespace millrace
