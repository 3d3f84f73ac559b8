#include "coordinator/app/cli/pace.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace millrace::engine {
namespace {

constexpr double kStepsPerSecond = 4;
constexpr double kFastest = 1e6;
constexpr Micros kLongestBreath = std::chrono::seconds(2);  // after a step that was held up

}  // namespace

Result<double> ParseRate(const std::string& text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const std::string unit(stop, end);
  const bool known = unit.empty() || unit == "/s" || unit == "/m";
  const double per_second = unit == "/m" ? number / 60 : number;
  if (error == std::errc() && known && per_second > 0 && per_second <= kFastest) return per_second;
  return Fail(ErrorCode::Invalid, "'" + text + "' is no rate, such as 500/s or 30/m; at most 1000000/s");
}

Pace::Pace(double per_second, std::size_t most)
    : per_second_(per_second),
      step_(static_cast<std::size_t>(
          std::clamp(std::ceil(per_second / kStepsPerSecond), 1.0, static_cast<double>(most)))) {}

Micros Pace::Rest(std::size_t count, BootTime began, BootTime ended) const {
  const auto took = std::chrono::duration_cast<Micros>(ended - began);
  const Micros due(static_cast<std::int64_t>(static_cast<double>(count) / per_second_ * 1e6));
  return std::max({due - took, std::min(took, kLongestBreath), Micros(0)});
}

}  // namespace millrace::engine
