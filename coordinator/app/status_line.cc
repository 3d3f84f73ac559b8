#include "coordinator/app/status_line.h"

#include <cstdio>

#include "coordinator/app/terminal.h"

namespace millrace::engine {
namespace {

constexpr Micros kBetween = std::chrono::milliseconds(100);

}  // namespace

bool StatusLine::Due(BootTime now) const { return enabled_ && (!last_ || now - *last_ >= kBetween); }

// The cursor goes back to the line's beginning, since whatever else is printed clears it.
void StatusLine::Show(const std::string& text, BootTime now) {
  if (!Due(now)) return;
  last_ = now;
  drawn_ = true;
  const std::string fitted = Fit(text, TerminalWidth() - 1);
  std::fprintf(stderr, "%s%s\r", kClearLine, fitted.c_str());
  std::fflush(stderr);
}

void StatusLine::Clear() {
  if (!drawn_) return;
  std::fputs(kClearLine, stderr);
  std::fflush(stderr);
  drawn_ = false;
}

}  // namespace millrace::engine
