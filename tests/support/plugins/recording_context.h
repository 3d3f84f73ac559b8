// A CallContext that notes what a handler asks for, and answers what a test put in.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "framework/plugin/handler_instance.h"

namespace millrace::engine {

class RecordingContext : public CallContext {
 public:
  bool ShouldStop() const override { return stop; }
  Micros TimeLeft() const override { return time_left; }
  void Log(std::size_t index, LogLevel, std::string_view message) override {
    logged.emplace_back(message);
    logged_of.push_back(index);
  }
  Status SaveProgress(std::size_t index, std::string_view progress) override {
    saved.emplace_back(index, progress);
    return {};
  }
  Result<SqlResult> Execute(std::string_view sql, std::span<const SqlValue> values) override {
    executed.emplace_back(sql);
    bound.emplace_back(values.begin(), values.end());
    if (throws) throw std::runtime_error("the context threw");
    return sql_answer;
  }
  Result<bool> Submit(const NewTask& task) override {
    submitted.push_back(task);
    return true;
  }
  bool BeginTask(std::size_t index) override {
    begun.push_back(index);
    return begins;
  }
  void EndTask(bool done) override { ended.push_back(done); }
  void BeginTogether() override { ++together; }
  void Throw() override { ++thrown; }

  std::atomic<bool> stop = false;
  Micros time_left = std::chrono::seconds(30);
  bool throws = false;
  Result<SqlResult> sql_answer;
  std::vector<std::string> logged;
  std::vector<std::size_t> logged_of;  // the task of each line
  std::vector<std::pair<std::size_t, std::string>> saved;
  std::vector<std::string> executed;
  std::vector<std::vector<SqlValue>> bound;
  std::vector<NewTask> submitted;
  bool begins = true;
  std::vector<std::size_t> begun;  // tasks whose SQL was told apart
  std::vector<bool> ended;         // and whether each was done
  int together = 0;
  int thrown = 0;
};

// A task of the type, as a claim would give it.
inline Task SomeTask(const std::string& handler, const std::string& params, std::uint64_t id = 1) {
  Task task;
  task.key = {"tasks", id};
  task.handler = handler;
  task.params = params;
  task.attempt = 1;
  task.created_at = WallTime(std::chrono::seconds(1'700'000'000));
  return task;
}

}  // namespace millrace::engine
