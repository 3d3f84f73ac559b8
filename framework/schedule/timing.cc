#include "framework/schedule/timing.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using std::chrono::ceil;
using std::chrono::floor;
using std::chrono::local_seconds;
using std::chrono::minutes;
using std::chrono::seconds;
using std::chrono::sys_seconds;

constexpr const char* kDelayed = "after ";

// What a clock shows at the edges of a span.
local_seconds Shown(sys_seconds at, seconds offset) { return local_seconds(at.time_since_epoch() + offset); }
local_seconds FirstShown(const TimeZone::Span& span) { return Shown(span.begin, span.offset); }
local_seconds EndShown(const TimeZone::Span& span) { return Shown(span.end, span.offset); }

sys_seconds InstantOf(LocalMinute local, const TimeZone::Span& span) {
  return sys_seconds(local.time_since_epoch() - span.offset);
}

// Goes from span to span: in each, what the clock shows only grows, and is searched like a calendar.
std::optional<WallTime> NextOfCron(const Cron& cron, const TimeZone& zone, WallTime after) {
  const sys_seconds second = floor<seconds>(after);
  TimeZone::Span span = zone.SpanAt(second);
  const TimeZone::Span before = zone.SpanAt(span.begin - seconds(1));
  local_seconds shown = before.end == span.begin ? EndShown(before) : FirstShown(span);  // in earlier spans
  LocalMinute from = floor<minutes>(Shown(second, span.offset)) + minutes(1);
  while (true) {
    if (cron.NamesTimeOfDay()) from = std::max(from, ceil<minutes>(shown));
    const auto found = cron.FirstFrom(from);
    if (!found) return std::nullopt;
    if (*found < EndShown(span)) return InstantOf(*found, span);
    const TimeZone::Span next = zone.SpanAt(span.end);
    if (next.begin <= span.begin) return std::nullopt;  // the end of all tables
    const bool jumped_over = *found < FirstShown(next);
    if (cron.NamesHours() && jumped_over) return span.end;
    shown = EndShown(span);
    span = next;
    from = ceil<minutes>(FirstShown(span));
  }
}

WallTime NextOnGrid(Micros period, WallTime anchor, WallTime after) {
  if (after < anchor) return anchor;
  return anchor + ((after - anchor) / period + 1) * period;
}

}  // namespace

bool IsFixedDelay(std::string_view rhythm_text) { return rhythm_text.starts_with(kDelayed); }

std::string RhythmText(const Timing& timing) {
  if (const auto* cron = std::get_if<Cron>(&timing.rhythm)) {
    return "cron " + cron->text() + " " + timing.zone.name();
  }
  if (const auto* rate = std::get_if<FixedRate>(&timing.rhythm))
    return "every " + FormatDuration(rate->period);
  if (const auto* delay = std::get_if<FixedDelay>(&timing.rhythm))
    return kDelayed + FormatDuration(delay->delay);
  return "at " + FormatTime(std::get<OneShot>(timing.rhythm).at);
}

std::optional<WallTime> NextFiring(const Timing& timing, WallTime anchor, WallTime after) {
  if (const auto* cron = std::get_if<Cron>(&timing.rhythm)) {
    return NextOfCron(*cron, timing.zone, std::max(after, anchor - Micros(1)));
  }
  if (const auto* rate = std::get_if<FixedRate>(&timing.rhythm))
    return NextOnGrid(rate->period, anchor, after);
  const WallTime only = timing.Is<FixedDelay>() ? anchor : std::get<OneShot>(timing.rhythm).at;
  return after < only ? std::optional(only) : std::nullopt;
}

std::size_t CountFirings(const Timing& timing, WallTime anchor, WallTime after, WallTime until,
                         std::size_t most) {
  std::size_t count = 0;
  while (count < most) {
    const auto next = NextFiring(timing, anchor, after);
    if (!next || *next > until) break;
    after = *next;
    ++count;
  }
  return count;
}

WallTime LastFiring(const Timing& timing, WallTime anchor, WallTime first, WallTime until) {
  WallTime last = first;
  WallTime none_behind = until;
  while (none_behind - last > seconds(1)) {
    const WallTime middle = last + (none_behind - last) / 2;
    const auto next = NextFiring(timing, anchor, middle);
    if (next && *next <= until) {
      last = *next;
    } else {
      none_behind = middle;
    }
  }
  auto next = NextFiring(timing, anchor, last);
  for (; next && *next <= until; next = NextFiring(timing, anchor, last)) last = *next;
  return last;
}

std::string FormatLocal(WallTime time, const TimeZone& zone) {
  const auto whole = std::chrono::floor<seconds>(time);
  const seconds offset = zone.SpanAt(whole).offset;
  const auto local = whole + offset;
  const auto day = std::chrono::floor<std::chrono::days>(local);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss of_day(local - day);
  const long east = std::abs(offset.count()) / 60;
  char text[64];
  char within[8] = "";  // the minute
  const long second = static_cast<long>(of_day.seconds().count());
  if (second != 0) std::snprintf(within, sizeof within, ":%02ld", second);
  std::snprintf(text, sizeof text, "%04d-%02u-%02u %02ld:%02ld%s %c%02ld%02ld", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<long>(of_day.hours().count()), static_cast<long>(of_day.minutes().count()),
                within, offset < seconds(0) ? '-' : '+', east / 60, east % 60);
  return text;
}

}  // namespace millrace::engine
