// A moment as people write it, where the test knows that it can be read.
#pragma once

#include "framework/base/time_text.h"

namespace millrace::engine {

inline WallTime At(const char* text) { return ParseTime(text).value(); }

}  // namespace millrace::engine
