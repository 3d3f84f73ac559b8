// The statements that end attempts, within a transaction of the caller's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/store/mysql/session.h"
#include "framework/store/sql/claimers.h"
#include "framework/task/task.h"

namespace millrace::engine::mysql {

// What became of the statements for a set of settlements.
enum class SettleStep {
  Done,     // every row was hit; only COMMIT is missing
  Refused,  // at least one attempt was no longer this incarnation's: only ROLLBACK is left
};

// Runs the statements. An error leaves only ROLLBACK.
Result<SettleStep> RunSettle(Session& session, const sql::Claimer& claimer,
                             const std::vector<const Settlement*>& batch);

// The attempts among these that still run under this incarnation, in the order of the batch. `locking`: waits
// for transactions that are about to change them (Conflict if they take too long), so that the answer is
// final.
Result<std::vector<bool>> ReadRunning(Session& session, std::uint64_t claimer,
                                      const std::vector<const Settlement*>& batch, bool locking);

// The texts, pure: see settle_text.cc.
//
// Settlements of one table, one attempt number and one end, sorted by id.
struct SettleGroup {
  TableName table;
  std::uint32_t attempt = 0;
  Settlement::To to = Settlement::To::Succeeded;
  bool failed_attempt = false;
  bool leaves_no_row = false;
  std::vector<const Settlement*> rows;
};

std::vector<SettleGroup> GroupSettlements(const std::vector<const Settlement*>& batch);
// The condition of its rows, as sql_text.h makes it: the `ids` of what follows.
std::string WithIdsOf(const SettleGroup& group);

// Into the finished or the failed pool, where the claimer has its name.
std::string MoveText(const SettleGroup& group, const sql::Claimer& claimer, const std::string& ids);
std::string DeleteText(const SettleGroup& group, std::uint64_t claimer, const std::string& ids);
std::string WaitText(const SettleGroup& group, std::uint64_t claimer, const std::string& ids);
// Empty where nothing of the kind is to be written.
std::string AttemptsText(const std::string& incarnation, const std::vector<const Settlement*>& batch);

}  // namespace millrace::engine::mysql
