#include "coordinator/app/progress_line.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "coordinator/app/terminal.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kLongestBar = 30;
constexpr std::size_t kShortestBar = 6;

std::string Repeat(const char* piece, std::size_t times) {
  std::string text;
  for (std::size_t i = 0; i < times; ++i) text += piece;
  return text;
}

std::string Bar(double share, std::size_t width) {
  const auto full = static_cast<std::size_t>(share * static_cast<double>(width));
  return Repeat("█", full) + Repeat("░", width - full);
}

std::string RateText(double per_second) {
  if (per_second >= 10) return WithCommas(static_cast<std::uint64_t>(per_second)) + "/s";
  char text[32];
  std::snprintf(text, sizeof text, "%.1f/s", per_second);
  return text;
}

double Share(const ProgressNumbers& numbers) {
  const auto ended = static_cast<double>(numbers.done + numbers.failed);
  const double all = ended + static_cast<double>(numbers.waiting);
  return all == 0 ? 1.0 : ended / all;
}

// The parts in the order in which a narrow terminal keeps them.
std::vector<std::string> Parts(const ProgressNumbers& numbers) {
  std::vector<std::string> parts{WithCommas(numbers.done) + " done"};
  if (numbers.failed > 0) parts.push_back(WithCommas(numbers.failed) + " failed");
  if (numbers.retrying > 0) parts.push_back(WithCommas(numbers.retrying) + " retrying");
  parts.push_back(WithCommas(numbers.waiting) + (numbers.waiting_or_more ? " or more" : "") + " waiting");
  if (numbers.per_second > 0) {
    parts.push_back(RateText(numbers.per_second));
    if (!numbers.waiting_or_more && numbers.waiting > 0) {
      const double seconds = std::ceil(static_cast<double>(numbers.waiting) / numbers.per_second);
      parts.push_back(ElapsedText(std::chrono::seconds(static_cast<std::int64_t>(std::min(seconds, 1e8)))) +
                      " left");
    }
  }
  return parts;
}

}  // namespace

std::string ProgressLine(const ProgressNumbers& numbers, std::size_t width) {
  std::string text;
  for (const std::string& part : Parts(numbers)) {
    const std::string longer = text.empty() ? part : text + " · " + part;
    if (DisplayWidth(longer) > width) break;
    text = longer;
  }
  if (numbers.waiting_or_more) return text;
  char percent[16];
  std::snprintf(percent, sizeof percent, "%3d %%", static_cast<int>(Share(numbers) * 100));
  const std::size_t used = DisplayWidth(text) + DisplayWidth(percent) + 4;
  if (used + kShortestBar > width) return text;
  return Bar(Share(numbers), std::min(kLongestBar, width - used)) + "  " + percent + "  " + text;
}

double RateMeter::Rate(std::uint64_t done, BootTime now) {
  if (last_ && now > *last_) {
    const double seconds = std::chrono::duration<double>(now - *last_).count();
    const double sample = static_cast<double>(done - std::min(done, last_done_)) / seconds;
    const double weight = rate_ == 0 ? 1.0 : std::min(1.0, seconds / 2.0);
    rate_ += weight * (sample - rate_);
  }
  last_ = now;
  last_done_ = done;
  return rate_;
}

std::string ElapsedText(Micros elapsed) {
  const std::int64_t ms = elapsed.count() / 1000;
  char text[64];
  if (ms < 1000) {
    std::snprintf(text, sizeof text, "%lld ms", static_cast<long long>(ms));
  } else if (ms < 10'000 && ms % 1000 != 0) {
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(ms) / 1000);
  } else if (ms < 60'000) {
    std::snprintf(text, sizeof text, "%lld s", static_cast<long long>(ms / 1000));
  } else if (ms < 3'600'000) {
    std::snprintf(text, sizeof text, "%lld min %lld s", static_cast<long long>(ms / 60'000),
                  static_cast<long long>(ms / 1000 % 60));
  } else if (ms < 48LL * 3'600'000) {
    std::snprintf(text, sizeof text, "%lld h %lld min", static_cast<long long>(ms / 3'600'000),
                  static_cast<long long>(ms / 60'000 % 60));
  } else {
    std::snprintf(text, sizeof text, "%lld days", static_cast<long long>(ms / 86'400'000));
  }
  return text;
}

}  // namespace millrace::engine
