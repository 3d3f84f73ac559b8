// A limit in words.
#pragma once

#include <string>

#include "framework/config/policy_config.h"

namespace millrace::engine {

// `100/s`, `3 at once`, `100/s and 3 at once`, a rate as it is configured; empty: there is none.
std::string LimitText(const LimitConfig& limit);

}  // namespace millrace::engine
