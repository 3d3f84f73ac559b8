// The mill's session on an SQLite shard. One thread at a time.
#pragma once

#include <vector>

#include "framework/store/sqlite/connection.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// The scan's two statements, for the schema check too: a row value `(run_at, id) > (?, ?)` would bound run_at
// alone, and read a tie from its beginning for every page of it.
// Values: slice, handler, urgency, run_at after, now, limit. `with_bytes`: with ScanRow::bytes.
std::string ScanSql(const TableName& table, bool with_bytes = false);
// Values: slice, handler, urgency, run_at, id after, limit.
std::string ScanTieSql(const TableName& table, bool with_bytes = false);

class CounterSums;

class SqliteTaskStore final : public TaskStore {
 public:
  explicit SqliteTaskStore(SqliteFile& file) : db_(file) {}

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
  Status CheckAlive(const std::string& incarnation);
  Result<bool> IsAlive(const std::string& incarnation);
  // Whether the row was there to be failed.
  Result<bool> FailOne(const TaskKey& key, std::uint32_t attempt, const std::string& why, CounterSums& sums);
  Status MarkInDoubt(const TaskKey& task);
  // Raises the attempt of rows that run under the incarnation with `attempt`, and appends them whole.
  Status AdoptRows(const ClaimRequest& request, std::uint32_t attempt, std::vector<Task>& adopted);

  SqliteConnection db_;
};

}  // namespace millrace::engine
