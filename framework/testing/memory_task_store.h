// The mill's session on a memory shard. Thread-safe.
#pragma once

#include "framework/store/task_store.h"
#include "framework/testing/memory_shard.h"

namespace millrace::engine {

class MemoryTaskStore final : public TaskStore {
 public:
  explicit MemoryTaskStore(MemoryShard& shard) : shard_(shard) {}

  Result<DueMap> Due(std::span<const TableSlices> tables) override;
  Result<std::vector<ScanRow>> Scan(const ScanRequest& request) override;
  Result<std::vector<Task>> Claim(const ClaimRequest& request) override;
  Result<std::vector<std::uint64_t>> FailUnclaimed(const ClaimRequest& request,
                                                   const std::string& why) override;
  Result<std::vector<Task>> Resolve(const ClaimRequest& request) override;
  Result<std::vector<Task>> Adopt(const ClaimRequest& request) override;
  Result<std::vector<std::uint64_t>> Rescue(const RescueRequest& request) override;
  Result<std::vector<KeyVerdict>> ConfirmKeys(const std::string& incarnation,
                                              std::span<const Task> tasks) override;
  Result<SettleReport> Settle(const std::string& incarnation, std::span<const Settlement> batch) override;
  Result<std::vector<bool>> StillRunning(const std::string& incarnation,
                                         std::span<const Settlement> batch) override;
  Result<std::vector<TaskKey>> Cancelled(const std::string& incarnation,
                                         std::span<const TaskKey> running) override;
  Result<std::vector<TaskKey>> SaveProgress(const std::string& incarnation,
                                            std::span<const TaskProgress> progress) override;

 private:
  // Raises the attempt of the rows that run under the incarnation with `attempt`; returns them.
  std::vector<Task> Raise(const ClaimRequest& request, std::uint32_t attempt) MILLRACE_REQUIRES(shard_.mutex);

  MemoryShard& shard_;
};

}  // namespace millrace::engine
