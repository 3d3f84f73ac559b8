#include "coordinator/app/task/outcome_watch.h"

#include <gtest/gtest.h>

#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class OutcomeWatchTest : public testing::Test {
 protected:
  std::vector<TaskKey> Add(std::size_t count) {
    const auto report = operations_->Submit("tasks", std::vector<NewTask>(count, NewTask{.handler = "noop"}));
    std::vector<TaskKey> keys;
    for (const std::uint64_t id : report->ids) keys.push_back({"tasks", id});
    return keys;
  }
  void End(const TaskKey& key, Settlement::To to, const std::string& text = "") {
    const auto life = store_.OpenIncarnations();
    (void)life->Register({.id = "w.1", .worker = "w", .host = "h", .lease = seconds(10)});
    const auto tasks = store_.OpenTasks();
    const auto claimed = tasks->Claim({.table = "tasks", .incarnation = "w.1", .ids = {key.id}});
    ASSERT_TRUE(claimed);
    ASSERT_EQ(claimed->size(), 1u);
    const Settlement end{.key = key, .attempt = 1, .to = to, .text = text, .handler = "noop"};
    ASSERT_TRUE(tasks->Settle("w.1", std::span(&end, 1)));
  }
  OutcomeWatch Watch(const std::vector<TaskKey>& keys) { return {keys, clock_.Now()}; }
  void Look(OutcomeWatch& watch) { ASSERT_TRUE(watch.Look(*operations_, clock_.Now())); }

  ManualClock clock_;
  ScratchStore store_{clock_};
  std::unique_ptr<TaskOperations> operations_ = store_.OpenOperations();
};

TEST_F(OutcomeWatchTest, CountsHowTheTasksEnd) {
  const auto keys = Add(4);
  OutcomeWatch watch = Watch(keys);
  Look(watch);
  EXPECT_EQ(watch.open(), 4u);
  End(keys[0], Settlement::To::Succeeded);
  End(keys[1], Settlement::To::Failed, "no such customer");
  End(keys[2], Settlement::To::Cancelled, "not needed");
  Look(watch);
  EXPECT_EQ(watch.open(), 1u);
  EXPECT_EQ(watch.next(), keys[3]);
  End(keys[3], Settlement::To::Succeeded);
  Look(watch);
  EXPECT_TRUE(watch.Done());
  EXPECT_EQ(watch.totals().succeeded, 2u);
  ASSERT_EQ(watch.totals().others.size(), 2u);
  EXPECT_EQ(watch.totals().others[0].why, "no such customer");
  EXPECT_EQ(watch.totals().others[1].state, "cancelled");
}

TEST_F(OutcomeWatchTest, ATaskThatIsNowhereTwiceIsGone) {
  OutcomeWatch watch = Watch({{"tasks", 4'711}});
  Look(watch);
  EXPECT_FALSE(watch.Done()) << "it may have been between two places";
  Look(watch);
  EXPECT_TRUE(watch.Done());
  EXPECT_EQ(watch.totals().gone, 1u);
  EXPECT_EQ(watch.totals().others[0].state, "gone");
}

TEST_F(OutcomeWatchTest, OfATaskThatStandsTwiceBothSayWhy) {
  const TaskKey key = Add(1)[0];
  OutcomeWatch watch = Watch({key, key});
  End(key, Settlement::To::Failed, "no such customer");
  Look(watch);
  ASSERT_EQ(watch.totals().others.size(), 2u);
  for (const WatchedEnd& end : watch.totals().others) EXPECT_EQ(end.why, "no such customer");
}

// Those that stand at the front for long keep nobody behind them from being seen.
TEST_F(OutcomeWatchTest, LooksGoInTurnAtAllThatAreOpen) {
  const auto keys = Add(kMaxBatchRows + 1);
  OutcomeWatch watch = Watch(keys);
  End(keys.back(), Settlement::To::Succeeded);
  Look(watch);
  EXPECT_EQ(watch.open(), kMaxBatchRows + 1);
  Look(watch);
  EXPECT_EQ(watch.open(), kMaxBatchRows);
}

TEST_F(OutcomeWatchTest, ItAsksAtOnceWhileAllEndAndSeldomWhileNothingDoes) {
  const auto keys = Add(2);
  OutcomeWatch watch = Watch(keys);
  Look(watch);
  EXPECT_EQ(watch.Pause(clock_.Now()), milliseconds(50));
  clock_.Advance(seconds(5));
  EXPECT_EQ(watch.Pause(clock_.Now()), milliseconds(500));
  clock_.Advance(seconds(100));
  EXPECT_EQ(watch.Pause(clock_.Now()), seconds(2));
  End(keys[0], Settlement::To::Succeeded);
  Look(watch);
  EXPECT_EQ(watch.Pause(clock_.Now()), milliseconds(50));
  End(keys[1], Settlement::To::Succeeded);
  Look(watch);
  EXPECT_EQ(watch.Pause(clock_.Now()), milliseconds(0));
}

}  // namespace
}  // namespace millrace::engine
