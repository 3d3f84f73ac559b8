// The settle: how attempts end. Runs inside a transaction that the caller has open.
#pragma once

#include <span>
#include <string>

#include "framework/store/sqlite/session.h"
#include "framework/store/task_store.h"

namespace millrace::engine::sqlite {

// Ends these attempts as far as they are still `incarnation`'s. A row that the database refuses has no effect
// and is reported as Broken; every other error is the whole batch's, and the caller rolls back.
Result<SettleReport> SettleBatch(Session& db, const std::string& incarnation,
                                 std::span<const Settlement> batch);

}  // namespace millrace::engine::sqlite
