// When a schedule fires: its rhythm, and the next time after another. Pure.
//
// Daylight saving, in the manner of Vixie's cron (cron(8) of Debian, cronie; pg_cron has its code):
//   skipped  A time that the clock jumps over fires once, at the first instant behind the jump, however many
//            of its times were jumped over. Where the hours begin with `*` nothing is made up: it goes on
//            with what the clock shows.
//   doubled  A time that the clock shows twice fires the first time only. Where the minutes or the hours
//   begin
//            with `*` it fires both times: */15 goes on every fifteen minutes.
// Vixie's cron makes nothing up for `*/15 2 * * *`, either, so that its day would be lost: here it fires.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "framework/base/clock.h"
#include "framework/schedule/cron.h"
#include "framework/schedule/time_zone.h"

namespace millrace::engine {

// Once.
struct OneShot {
  WallTime at;
  bool operator==(const OneShot&) const = default;
};
// On a grid of times, whatever becomes of the tasks.
struct FixedRate {
  Micros period{};  // at least a second
  bool operator==(const FixedRate&) const = default;
};
// So long after the end of the last.
struct FixedDelay {
  Micros delay{};
  bool operator==(const FixedDelay&) const = default;
};

struct Timing {
  std::variant<OneShot, Cron, FixedRate, FixedDelay> rhythm;
  TimeZone zone;           // of a cron expression, and of what is written of a firing's time
  Micros initial_delay{};  // nothing fires in so long after the schedule began
  bool operator==(const Timing&) const = default;

  template <class Rhythm>
  bool Is() const {
    return std::holds_alternative<Rhythm>(rhythm);
  }
};

// The rhythm in one line, such as `cron 0 2 * * * Europe/Berlin`: another text is another rhythm.
std::string RhythmText(const Timing& timing);
// Of such a text.
bool IsFixedDelay(std::string_view rhythm_text);

// The first firing later than `after` and not earlier than `anchor`, from which a fixed rate counts; nullopt:
// there is none, or, for a fixed delay behind its anchor, none that is known before the end of the last.
std::optional<WallTime> NextFiring(const Timing& timing, WallTime anchor, WallTime after);

// How many firings lie in (after, until], counted up to `most`.
std::size_t CountFirings(const Timing& timing, WallTime anchor, WallTime after, WallTime until,
                         std::size_t most);

// The last firing that is not later than `until`; `first` is one.
WallTime LastFiring(const Timing& timing, WallTime anchor, WallTime first, WallTime until);

// What a clock of the zone shows, with its offset, for people: 2026-10-25 02:30 +0200.
std::string FormatLocal(WallTime time, const TimeZone& zone);

}  // namespace millrace::engine
