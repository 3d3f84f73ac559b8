// The mill's session, as far as its statements are the same on every database; and how whole tasks are read.
// Its parts: task_store.cc, rescue.cc.
#pragma once

#include "framework/store/sql/claimers.h"
#include "framework/store/sql/connection.h"
#include "framework/store/task_store.h"

namespace millrace::engine::sql {

// Where tasks are read from: what is asked about their claimers differs.
enum class TaskRows {
  Claimed,  // of the hot table, and the reader's own: ReadTask leaves `claimed_by` to it
  Hot,
  Ended,  // of the two other pools
};
// The columns that ReadTask expects, in its order.
std::string TaskColumns(TaskRows rows);
inline constexpr unsigned kTaskColumns = 20;
Task ReadTask(const TableName& table, const Row& row);

class SqlTaskStore : public TaskStore {
 public:
  // Both are borrowed.
  SqlTaskStore(Connection& db, Claimers& claimers) : claimers_(claimers), db_(db) {}

  Result<std::vector<std::uint64_t>> GreatestIds(std::span<const TableName> tables) override;
  Result<std::vector<std::uint64_t>> FailUnclaimed(const ClaimRequest& request,
                                                   const std::string& why) override;
  Result<std::vector<std::uint64_t>> Rescue(const RescueRequest& request) override;
  Result<std::vector<TaskKey>> Cancelled(const std::string& incarnation,
                                         std::span<const TaskKey> running) override;
  Result<std::vector<KeyVerdict>> ConfirmKeys(const std::string& incarnation,
                                              std::span<const Task> tasks) override;

 protected:
  Result<Claimer> ByName(const std::string& incarnation);
  // Not marked dead. With `$share` for `lock` it stays so until the transaction's end.
  Result<bool> IsAlive(const Claimer& claimer, std::string_view lock = "");
  // Fills in who claimed the rows of a scan; `claimers` are their numbers.
  Status NameClaimers(const std::vector<std::uint64_t>& claimers, std::vector<ScanRow>& rows);

 private:
  // In one transaction: of what may be rescued all, or an error.
  Result<std::vector<std::uint64_t>> RescueTogether(const RescueRequest& request);

  Claimers& claimers_;
  Connection& db_;
};

}  // namespace millrace::engine::sql
