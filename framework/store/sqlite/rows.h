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

}  // namespace millrace::engine::sqlite
