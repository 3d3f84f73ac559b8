// Numbers, times and lists as people read them. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/clock.h"

namespace millrace::engine {

// Columns that the text takes, counting each code point as one.
std::size_t DisplayWidth(std::string_view text);
// Cut to `width` columns with a `…`; what no terminal may get is escaped, and what was escaped stays.
std::string Fit(std::string_view text, std::size_t width);

// Broken at blanks into lines of at most `width` columns; 0: one line. The first is to stand behind `begin`
// columns, the others begin with `indent` blanks. A word that is longer stands as it is.
std::string Wrapped(std::string_view text, std::size_t width, std::size_t begin = 0, std::size_t indent = 2);

// 16,049
std::string WithCommas(std::uint64_t number);
// `25 %`, of a part of 1; at least `1 %`.
std::string PercentText(double part);
// `1 task`, `2 tasks`
std::string Count(std::uint64_t number, const std::string& one, const std::string& many);

// `a, b, c`
template <class Names>
std::string Joined(const Names& names, std::string_view between = ", ") {
  std::string text;
  for (const std::string& name : names) text.append(text.empty() ? "" : between).append(name);
  return text;
}

// What to say after a name that is not known: the nearest one that is; where none is near, `otherwise` and
// all of them, at most `most`; nothing where there are none.
std::string NearestOf(const std::string& wrong, const std::vector<std::string>& known,
                      const std::string& otherwise, std::size_t most = 1000);

// 850 ms, 6.2 s, 4 min 10 s, 2 h 5 min: as exact as people read it.
std::string ElapsedText(Micros elapsed);
// `in 5 min`, `3 s ago`, `now`.
std::string Relative(WallTime time, WallTime now);

}  // namespace millrace::engine
