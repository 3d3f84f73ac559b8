#include "framework/policy/coverage.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "framework/policy/load_balance.h"

namespace millrace::engine {
namespace {

// nullopt: all.
std::optional<std::vector<std::uint32_t>> Numbers(std::string_view owned) {
  auto numbers = ParseLoadBalance(owned);
  return numbers ? std::optional(std::move(*numbers)) : std::nullopt;
}

}  // namespace

bool Covers(std::string_view owned, std::uint32_t number) {
  const auto numbers = Numbers(owned);
  return !numbers || std::binary_search(numbers->begin(), numbers->end(), number);
}

std::vector<std::uint32_t> Uncovered(std::span<const std::string> owned, std::uint32_t slices) {
  std::vector<bool> covered(slices, false);
  for (const std::string& text : owned) {
    const auto numbers = Numbers(text);
    if (!numbers) return {};
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
