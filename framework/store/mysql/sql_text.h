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

namespace millrace::engine::mysql {

// 'text' with every dangerous byte escaped; binary-safe.
std::string Quote(std::string_view text);
// The same, or NULL for an empty text.
std::string QuoteOrNull(std::string_view text);
// 1,2,3
std::string List(std::span<const std::uint64_t> ids);
std::vector<std::uint64_t> Sorted(std::span<const std::uint64_t> ids);
// '2026-11-20 18:00:00.000000'; times beyond what DATETIME holds are moved to its ends.
std::string TimeLiteral(WallTime time);
// The expression for a time that lies `delay` after the server's clock.
std::string After(Micros delay);
// Reads a DATETIME(6) as the server prints it.
std::optional<WallTime> ParseSqlTime(std::string_view text);

}  // namespace millrace::engine::mysql
