// How a firing begins a fan-out, in the firing's own transaction.
#pragma once

#include "framework/store/fan_out_store.h"
#include "framework/store/sql/connection.h"

namespace millrace::engine::sql {

// Its row; nothing where the same firing has one already.
Status EnterFanOut(Connection& db, const FanOut& fan_out);
// Whether one of this schedule is under way.
Result<bool> IsFanningOut(Connection& db, const std::string& schedule);

}  // namespace millrace::engine::sql
