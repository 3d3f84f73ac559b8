// The line at the bottom of a terminal that is drawn over and over. The only place that draws it.
#pragma once

#include <optional>
#include <string>

#include "framework/base/clock.h"

namespace millrace::engine {

// Not thread-safe. On standard error, since output may be piped.
class StatusLine {
 public:
  explicit StatusLine(bool enabled) : enabled_(enabled) {}
  ~StatusLine() { Clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool enabled() const { return enabled_; }
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
