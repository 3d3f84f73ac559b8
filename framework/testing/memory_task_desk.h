// What people and producers ask of a memory shard. Thread-safe. Keeps no audit: nothing reads it there.
#pragma once

#include "framework/testing/memory_shard.h"

namespace millrace::engine {

class MemoryTaskDesk final : public TaskDesk {
 public:
  explicit MemoryTaskDesk(MemoryShard& shard) : shard_(shard) {}

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
  MemoryShard& shard_;
};

}  // namespace millrace::engine
