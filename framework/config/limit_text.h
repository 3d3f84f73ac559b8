// A limit in words.
#pragma once

#include <string>

#include "framework/config/policy_config.h"

namespace millrace::engine {

// `100/s`, `30/m`: in the first unit in which it is a whole number; else a second's.
std::string RateText(double rate);
// `100/s`, `3 at once`, `100/s and 3 at once`; empty: there is none.
std::string LimitText(const LimitConfig& limit);

}  // namespace millrace::engine
