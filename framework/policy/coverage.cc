#include "framework/policy/coverage.h"

#include "framework/policy/load_balance.h"

namespace millrace::engine {

std::vector<std::uint32_t> Uncovered(std::span<const std::string> owned, std::uint32_t slices) {
  std::vector<bool> covered(slices, false);
  for (const std::string& text : owned) {
    if (text.empty()) return {};
    const auto numbers = ParseLoadBalance(text);
    if (!numbers) continue;
    for (std::uint32_t number : *numbers) {
      if (number < slices) covered[number] = true;
    }
  }
  std::vector<std::uint32_t> uncovered;
  for (std::uint32_t number = 0; number < slices; ++number) {
    if (!covered[number]) uncovered.push_back(number);
  }
  return uncovered;
}

}  // namespace millrace::engine
