// Policies in words, as they are configured.
#pragma once

#include <cstdint>
#include <string>

#include "framework/config/policy_config.h"

namespace millrace::engine {

// `100/s`, `3 at once`, `100/s and 3 at once`; empty: there is no limit.
std::string LimitText(const LimitConfig& limit);
// A range of priorities or failures: `5-9`, or `3` alone.
std::string RangeText(std::uint32_t from, std::uint32_t to);

}  // namespace millrace::engine
