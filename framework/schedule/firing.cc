#include "framework/schedule/firing.h"

#include <algorithm>

#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

// A firing beyond it would not fit into a database's column.
constexpr WallTime kEndOfTime = std::chrono::sys_days(std::chrono::year(9999) / 1 / 1);

std::optional<WallTime> NextAfter(const Timing& timing, const ScheduleState& state, WallTime after) {
  const auto next = NextFiring(timing, state.anchor, after);
  return next && *next < kEndOfTime ? next : std::nullopt;
}

// The next firing of a rhythm that begins now, or is another one from now on.
std::optional<WallTime> FirstOf(const Timing& timing, const ScheduleState& state, WallTime now) {
  if (timing.Is<FixedDelay>()) return state.last ? std::nullopt : std::optional(std::max(state.anchor, now));
  if (const auto* once = std::get_if<OneShot>(&timing.rhythm)) {
    const bool over = once->at < now - kPunctual || state.last == once->at;
    return over ? std::nullopt : std::optional(once->at);
  }
  return NextAfter(timing, state, state.last ? std::max(*state.last, now) : now - Micros(1));
}

ScheduleState Begun(const ScheduleRule& rule, WallTime now) {
  ScheduleState state;
  state.rhythm = RhythmText(rule.timing);
  state.anchor = now + rule.timing.initial_delay;
  state.paused = rule.paused;
  state.next = FirstOf(rule.timing, state, now);
  return state;
}

// How many firings of the former rhythm never will be: what was due, taken for one, since of that rhythm no
// more is known than its text. A fixed delay's are not counted, here as elsewhere.
std::size_t Retime(const Timing& timing, ScheduleState& state, WallTime now) {
  const bool due = !state.paused && state.next && *state.next <= now && !IsFixedDelay(state.rhythm);
  const auto before = state.next;
  state.rhythm = RhythmText(timing);
  if (timing.Is<FixedRate>() && state.last) state.anchor = *state.last;
  state.next = FirstOf(timing, state, now);
  return due && state.next != before ? 1 : 0;
}

// What came due in the pause lapses.
std::size_t Resume(const Timing& timing, ScheduleState& state, WallTime now) {
  state.paused = false;
  if (!state.next || *state.next > now || timing.Is<FixedDelay>()) return 0;
  const WallTime before = *state.next - Micros(1);
  state.next = NextAfter(timing, state, now);
  return CountFirings(timing, state.anchor, before, now, kMostCounted);
}

// Of the firings from `next` to now, which fires; nullopt: none does.
std::optional<WallTime> ChosenOf(const ScheduleRule& rule, const ScheduleState& state, WallTime now) {
  const Timing& timing = rule.timing;
  const WallTime first = *state.next;
  if (timing.Is<FixedDelay>()) return first;  // one that is late, however late
  if (rule.catch_up != CatchUp::All) {
    const WallTime last = LastFiring(timing, state.anchor, first, now);
    const bool missed = now - last > kPunctual;
    return rule.catch_up == CatchUp::None && missed ? std::nullopt : std::optional(last);
  }
  const auto count_behind = [&](WallTime after) {
    return CountFirings(timing, state.anchor, after, now, kMostMadeUp + 1);
  };
  if (count_behind(first - Micros(1)) <= kMostMadeUp) return first;
  WallTime too_early = first - Micros(1);
  WallTime late_enough = now;
  while (late_enough - too_early > std::chrono::seconds(1)) {
    const WallTime middle = too_early + (late_enough - too_early) / 2;
    (count_behind(middle) > kMostMadeUp ? too_early : late_enough) = middle;
  }
  return NextFiring(timing, state.anchor, late_enough);
}

// Carries out what is due by `state.next`, which is not later than now.
void FireDue(const ScheduleRule& rule, bool in_work, WallTime now, ScheduleState& state, FiringStep& step) {
  const Timing& timing = rule.timing;
  const WallTime before = *state.next - Micros(1);
  if (rule.overlap == Overlap::Allow || !in_work) step.fire = ChosenOf(rule, state, now);
  if (step.fire) state.last = step.fire;
  state.next = timing.Is<FixedDelay>() ? std::nullopt : NextAfter(timing, state, step.fire.value_or(now));
  if (timing.Is<FixedDelay>()) return;
  const WallTime lapsed_until = step.fire ? *step.fire - Micros(1) : now;
  step.lapsed += CountFirings(timing, state.anchor, before, lapsed_until, kMostCounted);
}

}  // namespace

std::optional<Micros> LateBy(const ScheduleState& state, WallTime now) {
  if (state.paused || !state.next || now - *state.next <= kPunctual) return std::nullopt;
  return now - *state.next;
}

FiringStep Decide(const ScheduleRule& rule, const std::optional<ScheduleState>& state,
                  const LastTask& last_task, WallTime now) {
  FiringStep step;
  ScheduleState row = state ? *state : Begun(rule, now);
  if (row.rhythm != RhythmText(rule.timing)) step.lapsed += Retime(rule.timing, row, now);
  if (row.paused && !rule.paused) step.lapsed += Resume(rule.timing, row, now);
  row.paused = rule.paused;
  const auto* delay = std::get_if<FixedDelay>(&rule.timing.rhythm);
  if (delay != nullptr && last_task.in_work) {
    row.next = std::nullopt;
  } else if (delay != nullptr && !row.next) {
    // An end that lies ahead was told by a clock that has since been set back.
    row.next = std::max(row.anchor, std::min(last_task.ended.value_or(now), now) + delay->delay);
  } else if (delay != nullptr && last_task.ended && *last_task.ended <= now) {
    // Of a task that was run by hand, and has ended since the last look.
    row.next = std::max(*row.next, *last_task.ended + delay->delay);
  }
  // A row is there before it fires, so that of two who make it one fires.
  if (state && row.next && *row.next <= now && !row.paused) FireDue(rule, last_task.in_work, now, row, step);
  if (!row.paused) step.look_at = row.next;
  if (row != state) step.moved = std::move(row);
  return step;
}

std::string FiringKey(const std::string& name, WallTime firing) {
  return "schedule/" + name + "/" + FormatTime(firing);
}

}  // namespace millrace::engine
