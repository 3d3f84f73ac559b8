// What people and producers ask of an SQLite shard. One thread at a time.
#pragma once

#include "framework/store/sqlite/connection.h"
#include "framework/store/task_desk.h"

namespace millrace::engine {

class SqliteTaskDesk final : public TaskDesk {
 public:
  explicit SqliteTaskDesk(SqliteFile& file) : db_(file) {}

  Result<SubmitReport> Submit(const TableName& table, std::span<const NewTask> tasks) override;
  Result<TaskRecord> Get(const TaskKey& key) override;
  Result<TaskKey> Find(const TableName& table, const std::string& handler, const std::string& key) override;
  Result<TaskPage> List(const TableName& table, const TaskFilter& filter, const std::string& after,
                        std::size_t limit) override;
  Result<std::vector<std::uint64_t>> Apply(TaskAction action, const TableName& table,
                                           std::span<const std::uint64_t> ids,
                                           const std::string& actor) override;
  Result<bool> SetPause(const std::string& what, const std::string& actor, bool on) override;
  Result<std::vector<PauseRecord>> Pauses() override;
  Result<std::vector<TaskTotals>> Totals() override;
  Result<std::vector<GroupBacklog>> Backlog(const TableName& table) override;

 private:
  Result<std::vector<AttemptRecord>> Attempts(const TaskKey& key);

  SqliteConnection db_;
};

}  // namespace millrace::engine
