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
// The condition of the rows with these ids, of which there is one at least; they are sorted. Neighbours are a
// range, which costs a server about half as much as so many ids. Its last row is asked for by itself: a
// server that reads a range also locks, for a moment, the row that it finds behind it, which may be somebody
// else's.
std::string WithIds(std::span<const std::uint64_t> ids);
// '2026-11-20 18:00:00.000000'; times beyond what DATETIME holds are moved to its ends.
std::string TimeLiteral(WallTime time);

// A value that holds for the ids from `first` on, up to the next one's.
struct FromId {
  std::uint64_t first = 0;
  std::string value;  // an expression
};
// The expression that has for each `id` the value of its part. `parts` are sorted, and there is one at least.
// The text is as long as they are, and the server finds a row's part among n in log2(n) comparisons.
std::string ById(std::span<const FromId> parts);

// The expression for a time that lies `delay` after the server's clock.
std::string After(Micros delay);

}  // namespace millrace::engine::mysql
