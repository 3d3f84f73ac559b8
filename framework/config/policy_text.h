// Policies in words, as they are configured.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "framework/config/policy_config.h"

namespace millrace::engine {

// Of a rate, and how many seconds each has.
inline constexpr std::pair<const char*, double> kRateUnits[] = {{"/s", 1}, {"/m", 60}, {"/h", 3600}};

// Starts a second as `3.33/s`, rounded to two decimals, in the first unit in which `whole` is a whole number:
// so parts of one rate are in one unit, most often the one that was written. One that would be next to
// nothing there is in a unit in which it is not.
std::string RateText(double rate, double whole);
// `100/s`, `3 at once`, `100/s and 3 at once`; empty: there is no limit. `whole` is the rate of which the
// limit's is a part; 0: its own.
std::string LimitText(const LimitConfig& limit, double whole = 0);
// A range of priorities or failures: `5-9`, or `3` alone.
std::string RangeText(std::uint32_t from, std::uint32_t to);

}  // namespace millrace::engine
