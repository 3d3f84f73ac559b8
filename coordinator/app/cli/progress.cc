#include "coordinator/app/cli/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetween = std::chrono::milliseconds(100);
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

std::string TimeLeft(std::uint64_t rest, double per_second) {
  const double seconds = std::min(std::ceil(static_cast<double>(rest) / per_second), 1e8);
  return ElapsedText(std::chrono::seconds(static_cast<std::int64_t>(seconds))) + " left";
}

// The parts in the order in which a narrow terminal keeps them.
std::vector<std::string> Parts(const ProgressNumbers& numbers) {
  std::vector<std::string> parts{WithCommas(numbers.done) + " done"};
  if (numbers.failed > 0) parts.push_back(WithCommas(numbers.failed) + " failed");
  if (numbers.retrying > 0) parts.push_back(WithCommas(numbers.retrying) + " retrying");
  parts.push_back(WithCommas(numbers.waiting) + (numbers.waiting_or_more ? " or more" : "") + " waiting");
  if (numbers.per_second > 0) {
    parts.push_back(RateText(numbers.per_second));
    if (!numbers.waiting_or_more && numbers.waiting > 0)
      parts.push_back(TimeLeft(numbers.waiting, numbers.per_second));
  }
  return parts;
}

}  // namespace

std::string ProgressText(const ProgressNumbers& numbers, std::size_t width) {
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

std::string IntakeText(std::uint64_t in, std::optional<std::uint64_t> all, double per_second) {
  std::string text = WithCommas(in) + (all ? " of " + WithCommas(*all) : std::string()) + " in";
  if (per_second <= 0) return text;
  text += " · " + RateText(per_second);
  if (all && *all > in) text += " · " + TimeLeft(*all - in, per_second);
  return text;
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

bool ProgressLine::Due(BootTime now) const { return enabled_ && (!last_ || now - *last_ >= kBetween); }

// The cursor goes back to the line's beginning, since whatever else is printed clears it.
void ProgressLine::Show(const std::string& text, BootTime now) {
  if (!Due(now)) return;
  last_ = now;
  drawn_ = true;
  const std::string fitted = Fit(text, TerminalWidth() - 1);
  std::fprintf(stderr, "%s%s\r", kClearLine, fitted.c_str());
  std::fflush(stderr);
}

void ProgressLine::Clear() {
  if (!drawn_) return;
  std::fputs(kClearLine, stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace millrace::engine
