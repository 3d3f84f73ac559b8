#include "framework/config/policy_text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>

namespace millrace::engine {
namespace {

// What is summed up of parts is whole but for rounding.
bool IsWhole(double number) { return number >= 0.5 && std::abs(number - std::round(number)) < 1e-6 * number; }

// At most two decimals, none that is a zero at the end.
std::string Rounded(double number) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", std::round(number * 100) / 100);
  std::string rounded = text;
  rounded.erase(rounded.find_last_not_of('0') + 1);
  if (rounded.ends_with('.')) rounded.pop_back();
  return rounded;
}

}  // namespace

std::string RateText(double rate, double whole) {
  const auto* unit = std::find_if(std::begin(kRateUnits), std::end(kRateUnits),
                                  [&](const auto& one) { return IsWhole(whole * one.second); });
  if (unit == std::end(kRateUnits)) unit = std::begin(kRateUnits);
  while (rate * unit->second < 0.05 && std::next(unit) != std::end(kRateUnits)) ++unit;
  const std::string number = Rounded(rate * unit->second);
  return (number == "0" && rate > 0 ? "under 0.01" : number) + unit->first;
}

std::string LimitText(const LimitConfig& limit, double whole) {
  std::string text = limit.rate > 0 ? RateText(limit.rate, whole > 0 ? whole : limit.rate) : "";
  if (limit.concurrency == 0) return text;
  return text + (text.empty() ? "" : " and ") + std::to_string(limit.concurrency) + " at once";
}

std::string RangeText(std::uint32_t from, std::uint32_t to) {
  return from == to ? std::to_string(from) : std::to_string(from) + "-" + std::to_string(to);
}

}  // namespace millrace::engine
