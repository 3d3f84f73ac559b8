// Pieces of SQL text that all databases read alike. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/clock.h"

namespace millrace::engine::sql {

// 1,2,3
std::string List(std::span<const std::uint64_t> ids);
std::vector<std::uint64_t> Sorted(std::span<const std::uint64_t> ids);
// With as many digits as it takes to be read back as it was.
std::string Shortest(double value);
// `element` so many times, with commas: (?,?),(?,?)
std::string Repeat(std::string_view element, std::size_t times);
// Behind `(a,b)`, for so many pairs, each `(?,?)`: IN ((?,?),(?,?)), as each database searches it by an
// index.
std::string InTuples(std::string_view tuple, std::size_t times);

// 2026-11-20 18:00:00.000000, UTC: of one length, so that the order of the texts is that of the times. Times
// before the year 1 or after 9999 are moved to these ends.
std::string TimeText(WallTime time);
// The reverse; the fraction may be missing.
std::optional<WallTime> ParseTime(std::string_view text);

}  // namespace millrace::engine::sql
