// The mill's session. Its parts: due.cc (map and scan), claim.cc, progress.cc, settle.cc.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "framework/store/due_scope.h"
#include "framework/store/mysql/group_plan.h"
#include "framework/store/mysql/session.h"
#include "framework/store/sql/task_store.h"

namespace millrace::engine::mysql {

class MysqlTaskStore final : public sql::SqlTaskStore {
 public:
  MysqlTaskStore(const Endpoint& endpoint, ConnectionPool& pool, sql::Claimers& claimers)
      : SqlTaskStore(session_, claimers), session_(endpoint, endpoint.options.lease, &pool) {}

  Result<DueMap> Due(std::span<const TableSlices> tables, const DueWanted& wanted) override;
  Result<std::vector<ScanRow>> Scan(const ScanRequest& request) override;
  Result<std::vector<std::vector<ScanRow>>> ScanEach(std::span<const ScanRequest> requests) override;
  Result<std::vector<Task>> Claim(ClaimRequest request) override;
  Result<std::vector<Task>> Resolve(const ClaimRequest& request) override;
  Result<std::vector<Task>> Adopt(const ClaimRequest& request) override;
  Result<SettleReport> Settle(const std::string& incarnation, std::span<const Settlement> batch) override;
  Result<std::vector<bool>> StillRunning(const std::string& incarnation,
                                         std::span<const Settlement> batch) override;
  Result<std::vector<TaskKey>> SaveProgress(const std::string& incarnation,
                                            std::span<const TaskProgress> progress) override;

 private:
  // One query; the first brings the clock and the pauses.
  Status ReadTables(std::span<const DueScope> part, bool first, const DueWanted& wanted, DueMap& map);
  // One for each, since a table of them is refused, locked as a whole perhaps.
  Status ReadEach(std::span<const DueScope> part, bool first, const DueWanted& wanted, DueMap& map);
  Result<std::vector<std::vector<ScanRow>>> ScanJoined(std::span<const ScanRequest> requests);
  // The pages of these requests; `place_of` tells whose a row is by its first column.
  Result<std::vector<std::vector<ScanRow>>> ReadPages(
      const std::string& text, std::span<const ScanRequest> requests,
      const std::function<std::size_t(std::uint64_t first)>& place_of);
  Result<std::vector<Task>> ClaimIds(ClaimRequest& request, const sql::Claimer& claimer,
                                     std::span<const std::uint64_t> ids);
  // Those rows that are as they were scanned need no reading; the others are claimed as if they had not been.
  // What was scanned is given away where all of them are claimed.
  Result<std::vector<Task>> ClaimScanned(const ClaimRequest& request, const sql::Claimer& claimer,
                                         std::span<const std::uint64_t> ids,
                                         std::span<ScannedTask* const> scanned);
  Result<std::vector<Task>> ClaimUnscanned(const ClaimRequest& request, const sql::Claimer& claimer,
                                           std::span<const std::uint64_t> ids);
  // What a claim has hit, which is so many of these rows; at least one.
  Result<std::vector<Task>> ReadHit(const ClaimRequest& request, const sql::Claimer& claimer,
                                    const std::string& list, std::uint64_t hit);
  Result<std::vector<std::uint64_t>> FreeIds(const TableName& table, std::span<const std::uint64_t> ids);
  Result<std::vector<Task>> ReadClaimed(const TableName& table, const sql::Claimer& claimer,
                                        const std::string& ids, std::uint32_t attempt);
  Result<std::vector<Task>> AdoptReached(const ClaimRequest& request, const sql::Claimer& claimer,
                                         const std::string& list);
  Result<std::vector<Task>> AdoptAttempt(const TableName& table, const sql::Claimer& claimer,
                                         std::span<const std::uint64_t> ids, std::uint32_t seen);
  using ProgressTexts = std::map<std::uint64_t, std::string>;  // by task id, of one table
  // At most kMaxBatchRows; returns those whose rows somebody has locked.
  Result<std::vector<TaskKey>> SavePart(const TableName& table, const sql::Claimer& claimer,
                                        std::uint32_t attempt, ProgressTexts texts);
  // Takes out those whose rows somebody has locked, and returns them.
  Result<std::vector<TaskKey>> LeaveOutLocked(const TableName& table, ProgressTexts& texts);

  Session session_;
  GroupPlan plan_;
  // Tables and id lists of the claims whose Resolve failed after it may have raised some of their rows.
  std::set<std::pair<TableName, std::string>> half_resolved_;
  std::set<TaskKey> busy_;  // what the last settles found locked
};

}  // namespace millrace::engine::mysql
