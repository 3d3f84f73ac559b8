// The mill's session on an SQLite shard. One thread at a time. Its parts: due.cc (map and scan), claim.cc,
// settle.cc.
#pragma once

#include <vector>

#include "framework/store/sql/task_store.h"
#include "framework/store/sqlite/session.h"

namespace millrace::engine::sqlite {

class SqliteTaskStore final : public sql::SqlTaskStore {
 public:
  explicit SqliteTaskStore(File& file) : SqlTaskStore(db_, file.claimers), db_(file) {}

  Result<DueMap> Due(std::span<const TableSlices> tables, const DueWanted& wanted) override;
  Result<std::vector<ScanRow>> Scan(const ScanRequest& request) override;
  Result<std::vector<Task>> Claim(ClaimRequest request) override;
  Result<std::vector<Task>> Resolve(const ClaimRequest& request) override;
  Result<std::vector<Task>> Adopt(const ClaimRequest& request) override;
  Result<SettleReport> Settle(const std::string& incarnation, std::span<const Settlement> batch) override;
  Result<std::vector<bool>> StillRunning(const std::string& incarnation,
                                         std::span<const Settlement> batch) override;
  Result<std::vector<TaskKey>> SaveProgress(const std::string& incarnation,
                                            std::span<const TaskProgress> progress) override;

 private:
  Status CheckAlive(const sql::Claimer& claimer);
  // Raises the attempt of rows that run under the incarnation with `attempt`, and appends them whole.
  Status AdoptRows(const ClaimRequest& request, const sql::Claimer& claimer, std::uint32_t attempt,
                   std::vector<Task>& adopted);

  Session db_;
};

// The row of an attempt of the claimer's, as long as it is.
inline constexpr char kMine[] = " WHERE id=? AND state=2 AND claimed_by=? AND attempt=?";

// The statements of a claim and a settle, as they are sent; `to` is a pool.
std::string ClaimSql(const TableName& table);
std::string CopySql(const TableName& table, Settlement::To to);
std::string DeleteSql(const TableName& table);
std::string WaitSql(const TableName& table);

// Within a transaction of the caller's. Ends these attempts as far as they are still the claimer's. A row
// that the database refuses has no effect and is reported as Broken; every other error is the whole batch's,
// and the caller rolls back.
Result<SettleReport> SettleBatch(Session& db, const sql::Claimer& claimer, std::span<const Settlement> batch);

}  // namespace millrace::engine::sqlite
