#include "framework/schedule/firing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>

#include "framework/testing/manual_clock.h"
#include "tests/support/time_of.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

Timing Nightly() { return {Cron::Parse("0 2 * * *").value()}; }
Timing Every(Micros period) { return {FixedRate{period}}; }
Timing After(Micros delay) { return {FixedDelay{delay}}; }
Timing Once(const char* time) { return {OneShot{At(time)}}; }

// A schedule with its row, and a clock of its own; its tasks end at once, unless the test says otherwise.
class Bench {
 public:
  explicit Bench(Timing timing, CatchUp catch_up = CatchUp::One, Overlap overlap = Overlap::Allow)
      : rule{std::move(timing), catch_up, overlap}, clock(At("2026-11-22T18:00:00Z")) {
    Look();
  }

  // Looks until there is nothing more to do; returns what fired.
  std::vector<std::string> Look() {
    std::vector<std::string> fired;
    while (true) {
      const WallTime now = clock.WallNow();
      const FiringStep step = Decide(rule, row, last_task, now);
      lapsed += step.lapsed;
      look_at = step.look_at;
      if (!step.moved) return fired;
      row = step.moved;
      if (!step.fire) continue;
      EXPECT_LE(*step.fire, now);
      fired.push_back(FormatTime(*step.fire));
      all.push_back(*step.fire);
      last_task = {false, now};
    }
  }
  std::vector<std::string> LookAt(const char* time) {
    clock.StepWall(At(time) - clock.WallNow());
    return Look();
  }
  void EndTask() { last_task = {false, clock.WallNow()}; }

  ScheduleRule rule;
  ManualClock clock;
  std::optional<ScheduleState> row;
  LastTask last_task;
  std::vector<WallTime> all;
  std::size_t lapsed = 0;
  std::optional<WallTime> look_at;
};

TEST(FiringTest, ACronScheduleFiresWhenItsTimeHasCome) {
  Bench nightly(Nightly());
  EXPECT_EQ(nightly.look_at, At("2026-11-23T02:00:00Z"));
  EXPECT_THAT(nightly.LookAt("2026-11-23T01:59:59Z"), IsEmpty());
  EXPECT_THAT(nightly.LookAt("2026-11-23T02:00:00Z"), ElementsAre("2026-11-23T02:00:00Z"));
  EXPECT_THAT(nightly.Look(), IsEmpty());
  EXPECT_EQ(nightly.look_at, At("2026-11-24T02:00:00Z"));
  EXPECT_EQ(nightly.lapsed, 0U);
}

TEST(FiringTest, ANewRowIsMadeBeforeItFires) {
  const FiringStep step = Decide({Every(5min)}, std::nullopt, {}, At("2026-11-22T18:00:00Z"));
  EXPECT_TRUE(step.moved);
  EXPECT_FALSE(step.fire) << "two that make the row would both fire";
  EXPECT_EQ(step.look_at, At("2026-11-22T18:00:00Z"));
}

TEST(FiringTest, AFixedRateFiresAtOnceAndThenOnItsGrid) {
  Bench rate(Every(5min));
  EXPECT_THAT(rate.all, ElementsAre(At("2026-11-22T18:00:00Z")));
  EXPECT_THAT(rate.LookAt("2026-11-22T18:05:01Z"), ElementsAre("2026-11-22T18:05:00Z"));
  EXPECT_THAT(rate.LookAt("2026-11-22T18:10:00Z"), ElementsAre("2026-11-22T18:10:00Z"));
}

TEST(FiringTest, AnInitialDelayComesFirst) {
  Timing timing = Every(5min);
  timing.initial_delay = 2min;
  Bench rate(timing);
  EXPECT_EQ(rate.look_at, At("2026-11-22T18:02:00Z"));
  EXPECT_THAT(rate.LookAt("2026-11-22T18:02:00Z"), ElementsAre("2026-11-22T18:02:00Z"));
  EXPECT_EQ(rate.look_at, At("2026-11-22T18:07:00Z"));

  Timing late = Nightly();
  late.initial_delay = 24h;
  EXPECT_EQ(Bench(late).look_at, At("2026-11-24T02:00:00Z"));
}

TEST(FiringTest, AFixedDelayCountsFromTheEndOfTheLast) {
  Bench delay(After(10min));
  EXPECT_EQ(delay.all.size(), 1U) << "the first comes at once";
  delay.last_task = {true, std::nullopt};
  EXPECT_THAT(delay.LookAt("2026-11-22T19:00:00Z"), IsEmpty());
  EXPECT_EQ(delay.look_at, std::nullopt);
  delay.EndTask();
  EXPECT_THAT(delay.LookAt("2026-11-22T19:09:59Z"), IsEmpty());
  EXPECT_EQ(delay.look_at, At("2026-11-22T19:10:00Z"));
  EXPECT_THAT(delay.LookAt("2026-11-22T23:00:00Z"), ElementsAre("2026-11-22T19:10:00Z"));
}

TEST(FiringTest, AFixedDelayWhoseTaskIsGoneGoesOn) {
  Bench delay(After(10min));
  delay.last_task = {true, std::nullopt};
  delay.Look();
  delay.last_task = {};  // removed by hand
  EXPECT_THAT(delay.LookAt("2026-11-22T19:00:00Z"), IsEmpty());
  EXPECT_EQ(delay.look_at, At("2026-11-22T19:10:00Z"));
}

TEST(FiringTest, AnEndThatLiesAheadIsNow) {
  Bench delay(After(10min));
  delay.last_task = {true, std::nullopt};
  delay.Look();
  delay.last_task = {false, At("2026-11-22T19:00:00Z")};
  EXPECT_THAT(delay.Look(), IsEmpty());
  EXPECT_EQ(delay.look_at, At("2026-11-22T18:10:00Z"));
}

TEST(FiringTest, ARunByHandPutsAFixedDelayOff) {
  Bench delay(After(10min));
  delay.LookAt("2026-11-22T18:05:00Z");
  delay.last_task = {true, std::nullopt};
  EXPECT_THAT(delay.LookAt("2026-11-22T18:30:00Z"), IsEmpty());
  delay.EndTask();
  delay.Look();
  EXPECT_EQ(delay.look_at, At("2026-11-22T18:40:00Z"));
}

TEST(FiringTest, ARunByHandThatEndsBetweenTwoLooksPutsAFixedDelayOff) {
  Bench delay(After(10min));
  delay.LookAt("2026-11-22T18:05:00Z");
  delay.EndTask();
  EXPECT_THAT(delay.LookAt("2026-11-22T18:10:00Z"), IsEmpty());
  EXPECT_EQ(delay.look_at, At("2026-11-22T18:15:00Z"));
  EXPECT_THAT(delay.LookAt("2026-11-22T18:15:00Z"), ElementsAre("2026-11-22T18:15:00Z"));
}

TEST(FiringTest, ARunByHandBeforeTheFirstFiringIsNoEnd) {
  Timing timing = After(10min);
  timing.initial_delay = 1h;
  Bench delay(timing);
  delay.last_task = {true, std::nullopt};
  EXPECT_THAT(delay.LookAt("2026-11-22T18:01:00Z"), IsEmpty());
  delay.EndTask();
  EXPECT_THAT(delay.Look(), IsEmpty());
  EXPECT_EQ(delay.look_at, At("2026-11-22T19:00:00Z"));
}

TEST(FiringTest, AOneShotFiresOnceAndIsOver) {
  Bench once(Once("2026-11-23T12:00:00Z"));
  EXPECT_THAT(once.LookAt("2026-11-23T12:00:01Z"), ElementsAre("2026-11-23T12:00:00Z"));
  EXPECT_EQ(once.look_at, std::nullopt);
  EXPECT_THAT(once.LookAt("2027-11-23T12:00:01Z"), IsEmpty());
}

TEST(FiringTest, AOneShotOfThePastNeverFires) {
  EXPECT_THAT(Bench(Once("2026-11-22T17:58:00Z")).all, IsEmpty());
  EXPECT_EQ(Bench(Once("2026-11-22T17:59:30Z")).all.size(), 1U) << "it was only just set";
}

TEST(CatchUpTest, NoneLeavesOutWhatWasMissed) {
  Bench bench(Every(5min), CatchUp::None);
  EXPECT_THAT(bench.LookAt("2026-11-22T19:03:00Z"), IsEmpty());
  EXPECT_EQ(bench.lapsed, 12U);
  EXPECT_EQ(bench.look_at, At("2026-11-22T19:05:00Z"));
}

TEST(CatchUpTest, NoneFiresWhatIsFoundWithinAMinute) {
  Bench bench(Every(5min), CatchUp::None);
  EXPECT_THAT(bench.LookAt("2026-11-22T19:01:00Z"), ElementsAre("2026-11-22T19:00:00Z"));
  EXPECT_EQ(bench.lapsed, 11U);
}

TEST(CatchUpTest, OneFiresForAll) {
  Bench bench(Every(5min), CatchUp::One);
  EXPECT_THAT(bench.LookAt("2026-11-22T19:03:00Z"), ElementsAre("2026-11-22T19:00:00Z"));
  EXPECT_EQ(bench.lapsed, 11U);
}

TEST(CatchUpTest, AllFireOldestFirst) {
  Bench bench(Every(5min), CatchUp::All);
  EXPECT_THAT(bench.LookAt("2026-11-22T18:17:00Z"),
              ElementsAre("2026-11-22T18:05:00Z", "2026-11-22T18:10:00Z", "2026-11-22T18:15:00Z"));
  EXPECT_EQ(bench.lapsed, 0U);
}

TEST(CatchUpTest, AllIsBoundedByTheLastThousand) {
  Bench bench(Timing{Cron::Parse("* * * * *").value()}, CatchUp::All);
  const auto fired = bench.LookAt("2026-11-25T18:00:00Z");
  EXPECT_EQ(fired.size(), kMostMadeUp);
  EXPECT_EQ(fired.back(), "2026-11-25T18:00:00Z");
  EXPECT_EQ(fired.size() + bench.lapsed, 3U * 24 * 60);
}

TEST(CatchUpTest, LapsedFiringsAreCountedUpToABound) {
  Bench bench(Every(1s), CatchUp::One);
  EXPECT_EQ(bench.LookAt("2026-12-22T18:00:00Z").size(), 1U);
  EXPECT_EQ(bench.lapsed, kMostCounted);
}

TEST(CatchUpTest, AMissedOneShotFiresLateUnlessNoneSays) {
  const Timing timing = Once("2026-11-23T12:00:00Z");
  EXPECT_THAT(Bench(timing).LookAt("2026-11-24T00:00:00Z"), ElementsAre("2026-11-23T12:00:00Z"));
  Bench none(timing, CatchUp::None);
  EXPECT_THAT(none.LookAt("2026-11-24T00:00:00Z"), IsEmpty());
  EXPECT_EQ(none.lapsed, 1U);
  EXPECT_EQ(none.look_at, std::nullopt);
}

TEST(OverlapTest, SkipLeavesOutWhatComesDueMeanwhile) {
  Bench bench(Every(5min), CatchUp::One, Overlap::Skip);
  bench.last_task = {true, std::nullopt};
  EXPECT_THAT(bench.LookAt("2026-11-22T18:05:00Z"), IsEmpty());
  EXPECT_THAT(bench.LookAt("2026-11-22T18:10:00Z"), IsEmpty());
  EXPECT_EQ(bench.lapsed, 2U);
  bench.EndTask();
  EXPECT_THAT(bench.LookAt("2026-11-22T18:12:00Z"), IsEmpty()) << "what lapsed is not made up";
  EXPECT_THAT(bench.LookAt("2026-11-22T18:15:00Z"), ElementsAre("2026-11-22T18:15:00Z"));
}

TEST(OverlapTest, AllowDoesNotAsk) {
  Bench bench(Every(5min));
  bench.last_task = {true, std::nullopt};
  EXPECT_THAT(bench.LookAt("2026-11-22T18:05:00Z"), ElementsAre("2026-11-22T18:05:00Z"));
}

TEST(PauseTest, WhatCameDueInAPauseLapses) {
  Bench bench(Nightly(), CatchUp::All);
  bench.rule.paused = true;
  EXPECT_THAT(bench.LookAt("2026-11-22T19:00:00Z"), IsEmpty());
  EXPECT_EQ(bench.look_at, std::nullopt);
  const auto row = bench.row;
  EXPECT_THAT(bench.LookAt("2026-11-25T19:00:00Z"), IsEmpty());
  EXPECT_EQ(bench.row, row) << "a pause writes nothing while it lasts";
  bench.rule.paused = false;
  EXPECT_THAT(bench.Look(), IsEmpty());
  EXPECT_EQ(bench.lapsed, 3U);
  EXPECT_EQ(bench.look_at, At("2026-11-26T02:00:00Z"));
}

TEST(PauseTest, AFixedDelayThatCameDueFiresAtTheEnd) {
  Bench bench(After(10min));
  bench.rule.paused = true;
  EXPECT_THAT(bench.LookAt("2026-11-22T20:00:00Z"), IsEmpty());
  bench.rule.paused = false;
  EXPECT_THAT(bench.Look(), ElementsAre("2026-11-22T18:10:00Z"));
}

TEST(PauseTest, AOneShotOfThePauseIsOver) {
  Bench bench(Once("2026-11-23T12:00:00Z"));
  bench.rule.paused = true;
  bench.LookAt("2026-11-24T12:00:00Z");
  bench.rule.paused = false;
  EXPECT_THAT(bench.Look(), IsEmpty());
  EXPECT_EQ(bench.look_at, std::nullopt);
}

TEST(RetimeTest, AChangedRhythmCountsFromTheLastFiring) {
  Bench bench(Every(1h));
  bench.LookAt("2026-11-22T19:00:00Z");
  bench.rule.timing = Every(45min);
  EXPECT_THAT(bench.LookAt("2026-11-22T19:20:00Z"), IsEmpty()) << "a change is no firing";
  EXPECT_EQ(bench.look_at, At("2026-11-22T19:45:00Z"));
  bench.rule.timing = Nightly();
  EXPECT_THAT(bench.Look(), IsEmpty());
  EXPECT_EQ(bench.look_at, At("2026-11-23T02:00:00Z"));
}

TEST(RetimeTest, WhatWasDueByTheFormerRhythmLapses) {
  Bench bench(Every(1h));
  bench.clock.StepWall(1h + 10s);
  bench.rule.timing = Nightly();
  EXPECT_THAT(bench.Look(), IsEmpty());
  EXPECT_EQ(bench.lapsed, 1U);
  EXPECT_EQ(bench.look_at, At("2026-11-23T02:00:00Z"));
  bench.rule.timing = Every(1h);
  bench.Look();
  EXPECT_EQ(bench.lapsed, 1U) << "nothing was due";
  bench.rule.timing = Nightly();
  bench.Look();
  bench.rule.timing = Every(1h);
  bench.rule.paused = true;
  EXPECT_THAT(bench.LookAt("2026-11-23T02:00:00Z"), IsEmpty());
  EXPECT_EQ(bench.lapsed, 2U) << "the pause came later";
}

TEST(RetimeTest, AFixedDelayThatWasDueLapsesNotAndNeitherDoesWhatFiresByBoth) {
  Bench delay(After(10min));
  delay.Look();
  delay.clock.StepWall(1h);
  delay.rule.timing = Nightly();
  delay.Look();
  EXPECT_EQ(delay.lapsed, 0U) << "it counts from an end, and none of its times is one to miss";
  Bench once(Once("2026-11-23T12:00:00Z"));
  once.row->rhythm = "written by another version";
  EXPECT_THAT(once.LookAt("2026-11-23T12:00:10Z"), ElementsAre("2026-11-23T12:00:00Z"));
  EXPECT_EQ(once.lapsed, 0U);
}

TEST(RetimeTest, AMovedOneShotFiresAgainAndAnUnchangedOneDoesNot) {
  Bench bench(Once("2026-11-23T12:00:00Z"));
  bench.LookAt("2026-11-23T12:00:00Z");
  bench.rule.timing = Once("2026-11-23T13:00:00Z");
  EXPECT_THAT(bench.LookAt("2026-11-23T13:00:00Z"), ElementsAre("2026-11-23T13:00:00Z"));
  bench.row->rhythm = "written by another version";
  EXPECT_THAT(bench.Look(), IsEmpty());
}

// The clock of the database is stepped back and forth by an hour at a time, and now and then nobody looks for
// a while.
RC_GTEST_PROP(SteppedClockTest, NothingIsDoubledAndNothingIsLostBeyondCatchUp, ()) {
  const CatchUp catch_up = *rc::gen::element(CatchUp::None, CatchUp::One, CatchUp::All);
  const Timing timing =
      *rc::gen::element(Every(5min), Every(37s), Nightly(), Timing{Cron::Parse("*/7 * * * *").value()});
  Bench bench(timing, catch_up);
  WallTime latest = bench.clock.WallNow();  // that the clock ever showed
  const WallTime anchor = bench.row->anchor;
  const std::size_t at_once = bench.all.size();
  const int steps = *rc::gen::inRange(1, 60);
  for (int i = 0; i < steps; ++i) {
    const Micros step = *rc::gen::element(Micros(10s), Micros(1min), Micros(20min), Micros(1h), Micros(-1h));
    bench.clock.StepWall(step);
    const auto before = bench.all.size();
    const WallTime now = bench.clock.WallNow();
    bench.Look();
    const auto fired = bench.all.size() - before;
    if (catch_up != CatchUp::All) RC_ASSERT(fired <= 1U);
    if (now <= latest) RC_ASSERT(fired == 0U);
    latest = std::max(latest, now);
  }
  RC_ASSERT(std::adjacent_find(bench.all.begin(), bench.all.end(), std::greater_equal<>()) ==
            bench.all.end());
  const std::size_t due = CountFirings(timing, anchor, At("2026-11-22T18:00:00Z"), latest, 100'000) + at_once;
  RC_ASSERT(bench.all.size() + bench.lapsed == due);
  if (catch_up == CatchUp::All) RC_ASSERT(bench.lapsed == 0U);
}

// Some that look at one row, each with a clock of its own and with what it read a while ago. Only the write
// that finds the row as it was read counts, as the database sees to it.
RC_GTEST_PROP(RaceTest, HoweverManyLookEachFiringIsInsertedOnce, ()) {
  const ScheduleRule rule{*rc::gen::element(Every(30s), Timing{Cron::Parse("* * * * *").value()}),
                          CatchUp::All};
  std::optional<ScheduleState> row;
  std::vector<WallTime> inserted;
  std::deque<std::pair<std::optional<ScheduleState>, FiringStep>> under_way;
  WallTime now = At("2026-11-22T18:00:00Z");
  for (int i = 0; i < 200; ++i) {
    now += Micros(*rc::gen::inRange(0, 20'000'000));
    const WallTime own_clock = now + Micros(*rc::gen::inRange(-5'000'000, 5'000'000));
    under_way.emplace_back(row, Decide(rule, row, {}, own_clock));
    if (under_way.size() < 3 && *rc::gen::arbitrary<bool>()) continue;
    const auto at = under_way.begin() + *rc::gen::inRange<long>(0, static_cast<long>(under_way.size()));
    const auto [seen, step] = *at;
    under_way.erase(at);
    if (!step.moved || row != seen) continue;
    row = step.moved;
    if (step.fire) inserted.push_back(*step.fire);
  }
  RC_ASSERT(std::adjacent_find(inserted.begin(), inserted.end(), std::greater_equal<>()) == inserted.end());
  for (std::size_t i = 1; i < inserted.size(); ++i)
    RC_ASSERT(NextFiring(rule.timing, row->anchor, inserted[i - 1]) == inserted[i]);
}

}  // namespace
}  // namespace millrace::engine
