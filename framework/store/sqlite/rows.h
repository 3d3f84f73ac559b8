// How tasks and times stand in the tables, and the pieces of SQL that several sessions share.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/utf8.h"
#include "framework/store/sql/text.h"
#include "framework/store/sqlite/session.h"
#include "framework/task/task.h"

namespace millrace::engine::sqlite {

using sql::TimeText;
// The reverse; the tables' constraint keeps the form.
WallTime TimeOf(std::string_view text);
std::optional<WallTime> TimeOrNone(std::string_view text);

// SQLite has no clock of its own: the store's now is this process's wall clock.
WallTime StoreNow();

// The columns that ReadTask reads, in its order, from the running pool.
inline constexpr std::string_view kTaskColumns =
    "id, slice, state, handler, priority, run_at, params, biz_key, batch, failures, attempt, crashes, cancel,"
    " claimed_by, claimed_at, last_error, progress, created_at";
inline constexpr int kTaskColumnCount = 18;
Task ReadTask(const Rows& row, const TableName& table);

}  // namespace millrace::engine::sqlite
