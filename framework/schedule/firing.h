// What a schedule does next: a state machine over the row that stands for it, told the time. Pure.
//
// Whoever looks at a schedule asks Decide, and carries the step out as one transaction: the row is moved on
// if it is still as it was seen, and the firing's task is inserted beside it. So a firing happens once,
// however many look, and whatever their clocks say: what decides is `next`, and it is moved on by whoever was
// first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "framework/base/clock.h"
#include "framework/schedule/timing.h"

namespace millrace::engine {

// Of firings that nobody was there for, or that came due faster than anybody looked.
enum class CatchUp {
  None,  // the last of them fires if it is found within kPunctual; else none
  One,   // the last of them fires, for all
  All,   // each fires, the oldest first; of more than kMostMadeUp the last so many
};
enum class Overlap {
  Allow,
  Skip,  // what comes due while the last firing's task is in no pool lapses
};

inline constexpr Micros kPunctual = std::chrono::minutes(1);
inline constexpr std::size_t kMostMadeUp = 1'000;
inline constexpr std::size_t kMostCounted = 10'000;  // of lapsed firings; this many are so many or more

struct ScheduleRule {
  Timing timing;
  CatchUp catch_up = CatchUp::One;
  Overlap overlap = Overlap::Allow;
  bool paused = false;
  bool operator==(const ScheduleRule&) const = default;
};

// A schedule's row, as far as it decides.
struct ScheduleState {
  std::string rhythm;  // RhythmText of what `next` was reckoned by
  WallTime anchor;     // nothing fires before; a fixed rate counts from here
  std::optional<WallTime>
      next;  // nullopt: a one-shot that is over, a fixed delay whose task is in no pool yet
  std::optional<WallTime> last;  // the time of the firing that was the last to fire
  bool paused = false;
  bool operator==(const ScheduleState&) const = default;
};

// The task of the last firing. One that is nowhere any more has ended.
struct LastTask {
  bool in_work = false;  // in no pool yet
  std::optional<WallTime> ended;
};

struct FiringStep {
  std::optional<ScheduleState> moved;  // the row as it is to be; nullopt: as it is
  std::optional<WallTime> fire;        // the firing to insert with it; its time, not later than now
  std::size_t lapsed = 0;              // firings that never will be, up to kMostCounted: worth a line
  std::optional<WallTime> look_at;     // when there is something to do again, by the clock that `now` is of;
                                       // nullopt: when the rule changes, or the last firing's task has ended
};

// By how much it is late: it should have fired longer than kPunctual ago, and nobody has looked. nullopt: it
// is not, or it is paused.
std::optional<Micros> LateBy(const ScheduleState& state, WallTime now);

// `state`: nullopt, where there is no row yet. What came due while a schedule was paused lapses; a fixed
// delay that came due fires at the end of the pause. A rhythm that has changed counts from the last firing (a
// fixed rate, a fixed delay) or from now on; what was due by the former lapses. A one-shot whose time had
// passed by more than kPunctual when its row was made never fires.
FiringStep Decide(const ScheduleRule& rule, const std::optional<ScheduleState>& state,
                  const LastTask& last_task, WallTime now);

// The key of a firing's task: schedule/NAME/2026-11-23T02:00:00Z.
std::string FiringKey(const std::string& name, WallTime firing);

}  // namespace millrace::engine
