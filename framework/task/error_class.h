// Error classes: the short words by which handlers tell kinds of failures apart, and patterns of them.
#pragma once

#include <string_view>

namespace millrace::engine {

// A task's own fault: it says nothing about whom its handler calls.
inline constexpr std::string_view kBadParamsClass = "bad_params";

// Whether a class fits a pattern: the class itself, or its beginning and a `*` at the end. An attempt that
// failed without a class fits `*` alone.
constexpr bool FitsClass(std::string_view pattern, std::string_view error_class) {
  if (!pattern.ends_with('*')) return pattern == error_class;
  return error_class.starts_with(pattern.substr(0, pattern.size() - 1));
}

}  // namespace millrace::engine
