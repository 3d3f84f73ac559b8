// What is told in a node has to fit into it, however much there is to tell. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "framework/task/task.h"

namespace millrace::engine {

// The first `most` lines, of long ones the beginning; then `and 7 more`.
inline std::vector<std::string> Brief(const std::vector<std::string>& lines, std::size_t most) {
  constexpr std::size_t kLongestLine = 1000;
  std::vector<std::string> brief;
  for (const std::string& line : lines) {
    if (brief.size() == most) {
      brief.push_back("and " + std::to_string(lines.size() - most) + " more");
      break;
    }
    brief.push_back(Shorten(line, kLongestLine));
  }
  return brief;
}

}  // namespace millrace::engine
