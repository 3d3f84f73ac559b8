// The statements that end attempts, within a transaction of the caller's.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "framework/store/mysql/session.h"
#include "framework/task/outcome.h"

namespace millrace::engine::mysql {

// What became of the statements for a set of settlements.
enum class SettleStep {
  Done,     // every row was hit; only COMMIT is missing
  Refused,  // at least one attempt was no longer this incarnation's: only ROLLBACK is left
};

// Runs the statements. An error leaves only ROLLBACK.
Result<SettleStep> RunSettle(Session& session, const std::string& incarnation,
                             const std::vector<const Settlement*>& batch);

// The attempts among these that still run under this incarnation, in the order of the batch. `locking`: waits
// for transactions that are about to change them (Conflict if they take too long), so that the answer is
// final.
Result<std::vector<bool>> ReadRunning(Session& session, const std::string& incarnation,
                                      const std::vector<const Settlement*>& batch, bool locking);

}  // namespace millrace::engine::mysql
