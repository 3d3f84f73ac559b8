#include "coordinator/testing/journal.h"

#include <array>
#include <cstdio>

namespace millrace::engine {

std::string Journal::Stamped(const std::string& line) const {
  const std::chrono::duration<double> since = timeline_.Now() - Timeline::kBeginning;
  std::array<char, 32> stamp{};
  std::snprintf(stamp.data(), stamp.size(), "%10.6f ", since.count());
  return stamp.data() + line;
}

}  // namespace millrace::engine
