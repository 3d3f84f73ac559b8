// Building SQL text safely: literals, id lists, times. Pure. Every session sets its sql_mode itself, so that
// a backslash is an escape in a literal, and speaks utf8mb4.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/clock.h"
#include "framework/store/sql/connection.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::mysql {

// 'text' with every dangerous byte escaped; binary-safe.
std::string Quote(std::string_view text);
// The text with a literal for each `?`. A server would take another trip to prepare it.
std::string WithValues(std::string_view text, std::span<const sql::Value> values);

using sql::List;
using sql::Sorted;
// '2026-11-20 18:00:00.000000'; times beyond what DATETIME holds are moved to its ends.
std::string TimeLiteral(WallTime time);
// The expression for a time that lies `delay` after the server's clock.
std::string After(Micros delay);

}  // namespace millrace::engine::mysql
