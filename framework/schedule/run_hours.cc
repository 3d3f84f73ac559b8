#include "framework/schedule/run_hours.h"

#include <cstdio>

namespace millrace::engine {
namespace {

using std::chrono::days;
using std::chrono::floor;
using std::chrono::seconds;
using std::chrono::sys_seconds;

seconds TimeOfDay(sys_seconds at, seconds offset) {
  const sys_seconds shown = at + offset;
  return shown - floor<days>(shown);
}

bool Has(const RunHours& hours, seconds time_of_day) {
  const bool begun = time_of_day >= hours.from;
  const bool over = time_of_day >= hours.to;
  return hours.from < hours.to ? begun && !over : begun || !over;
}

bool IsOpenAt(const RunHours& hours, sys_seconds at) {
  return Has(hours, TimeOfDay(at, hours.zone.SpanAt(at).offset));
}

}  // namespace

bool IsOpen(const RunHours& hours, WallTime at) { return IsOpenAt(hours, floor<seconds>(at)); }

// Within a span of one offset the clock shows the edge where the calendar has it; at the span's end it may
// jump into the hours, or out of them.
std::optional<WallTime> NextChange(const RunHours& hours, WallTime at) {
  if (hours.to - hours.from == days(1)) return std::nullopt;
  sys_seconds now = floor<seconds>(at);
  const bool open = IsOpenAt(hours, now);
  const seconds edge = (open ? hours.to : hours.from) % days(1);
  while (true) {
    const TimeZone::Span span = hours.zone.SpanAt(now);
    seconds left = edge - TimeOfDay(now, span.offset);
    if (left <= seconds(0)) left += days(1);
    if (now + left < span.end) return now + left;
    if (span.end <= now) return std::nullopt;  // the end of all tables
    if (IsOpenAt(hours, span.end) != open) return span.end;
    now = span.end;
  }
}

std::string OutsideHours(const RunHours& hours, WallTime at) {
  if (IsOpen(hours, at)) return "";
  const auto opens = NextChange(hours, at);
  if (!opens) return "outside its hours";
  const auto shown = floor<seconds>(*opens);
  const seconds time_of_day = TimeOfDay(shown, hours.zone.SpanAt(shown).offset);
  char text[16];
  std::snprintf(text, sizeof text, "%02d:%02d", static_cast<int>(time_of_day / std::chrono::hours(1)),
                static_cast<int>(time_of_day % std::chrono::hours(1) / std::chrono::minutes(1)));
  return "outside its hours until " + std::string(text) + " " + hours.zone.name();
}

}  // namespace millrace::engine
