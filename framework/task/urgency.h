// Urgency: the order of due groups. The same formula stands in the tables as a generated column.
#pragma once

#include <algorithm>
#include <cstdint>

namespace millrace::engine {

// 0 (most urgent) … 99: fresh before retried within a priority.
constexpr std::uint32_t Urgency(std::uint32_t priority, std::uint32_t failures) {
  return priority * 10 + std::min<std::uint32_t>(failures, 9);
}

}  // namespace millrace::engine
