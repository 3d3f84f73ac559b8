// When time begins in these tests.
#pragma once

#include "framework/base/clock.h"

namespace millrace::engine {

inline constexpr BootTime kStart{std::chrono::seconds(1000)};

}  // namespace millrace::engine
