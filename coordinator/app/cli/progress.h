// One line that says how work stands, drawn over and over at the bottom of a terminal.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "framework/base/clock.h"

namespace millrace::engine {

struct ProgressNumbers {
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  std::uint64_t retrying = 0;
  std::uint64_t waiting = 0;
  bool waiting_or_more = false;  // `waiting` is a bound from below: no share and no time left are shown
  double per_second = 0;
};

// `[████████░░░░]  62 %  10,012 done · 3 failed · 5 retrying · 6,034 waiting · 2,410/s · 3 s left`, less of
// it where the terminal is narrower; never wider than `width` columns.
std::string ProgressText(const ProgressNumbers& numbers, std::size_t width);

// `1,234,000 of 5,000,000 in · 98,300/s · 38 s left`; without a number of all of them
// `1,234,000 in · 98,300/s`.
std::string IntakeText(std::uint64_t in, std::optional<std::uint64_t> all, double per_second);

// Tasks per second over the last few seconds. One owner.
class RateMeter {
 public:
  // `done` never goes down. The first call gives 0.
  double Rate(std::uint64_t done, BootTime now);

 private:
  std::optional<BootTime> last_;
  std::uint64_t last_done_ = 0;
  double rate_ = 0;
};

// The only place that draws such a line. Not thread-safe. On standard error, since output may be piped.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled) : enabled_(enabled) {}
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // True if it is time to draw again: ten times a second is enough.
  bool Due(BootTime now) const;
  void Show(const std::string& text, BootTime now);  // nothing where it is not due
  void Clear();

 private:
  bool enabled_;
  bool drawn_ = false;
  std::optional<BootTime> last_;
};

}  // namespace millrace::engine
