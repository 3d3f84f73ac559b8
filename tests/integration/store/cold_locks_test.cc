// Actions of several statements read which rows they fit, and write those by their ids alone: between the
// two nobody else may change them. Each is held up there, in the proxy.
#include <functional>
#include <thread>

#include "framework/store/store.h"
#include "tests/integration/store/store_faults.h"

namespace millrace::engine {
namespace {

class ColdLocks : public StoreFaults {
 protected:
  // Does `work`, whose statement with this text is not sent until `beside` is done.
  template <class Work, class Beside>
  auto HeldUpAt(const std::string& text, Work work, Beside beside) {
    proxy_.Arm(TcpProxy::Evil::Delay, text);
    decltype(work()) result;
    std::thread working([&] { result = work(); });
    EXPECT_TRUE(proxy_.WaitDone(1)) << "the statement never came: " << text;
    beside();
    proxy_.Release();
    working.join();
    EXPECT_TRUE(result) << result.error().message;
    return result;
  }
  auto ActHeldUpAt(const std::string& text, TaskAction action, const std::vector<std::uint64_t>& ids,
                   const std::function<void()>& beside) {
    return HeldUpAt(
        text, [&] { return operations_->Apply(action, "tasks", ids, "test"); }, beside);
  }
  void ExpectBusy(const std::vector<Task>& claimed) {
    const auto settled = tasks_->Settle("w.1", Succeeded(claimed));
    ASSERT_TRUE(settled) << settled.error().message;
    EXPECT_EQ(settled->verdicts, std::vector(claimed.size(), SettleVerdict::Busy));
  }

  const std::unique_ptr<TaskStore> tasks_ = direct_->OpenTasks();
  const std::unique_ptr<TaskStore> held_up_ = proxied_->OpenTasks();
  const std::unique_ptr<TaskOperations> operations_ = proxied_->OpenOperations();
};

TEST_F(ColdLocks, NobodyClaimsWhatIsBeingHeld) {
  const auto ids = Add(1);
  const auto held =
      ActHeldUpAt("SET state=3", TaskAction::Hold, ids, [&] { EXPECT_TRUE(Claim(*tasks_, ids).empty()); });
  EXPECT_EQ(held->size(), 1U);
  EXPECT_EQ(Count("tasks WHERE state=3 AND attempt=0"), 1U);
}

TEST_F(ColdLocks, NobodyClaimsWhatIsBeingCancelled) {
  const auto ids = Add(1);
  const auto cancelled = ActHeldUpAt("INSERT INTO tasks_done", TaskAction::Cancel, ids,
                                     [&] { EXPECT_TRUE(Claim(*tasks_, ids).empty()); });
  EXPECT_EQ(cancelled->size(), 1U);
  EXPECT_EQ(Count("tasks_done WHERE state=4 AND attempt=0"), 1U);
  ExpectNothingLostOrDoubled(1);
}

TEST_F(ColdLocks, WhatIsBeingToldToStopIsSettledAfterwards) {
  const auto ids = Add(1);
  const auto claimed = Claim(*tasks_, ids);
  const auto cancelled = ActHeldUpAt("SET cancel=1", TaskAction::Cancel, ids, [&] { ExpectBusy(claimed); });
  EXPECT_EQ(cancelled->size(), 1U);
  EXPECT_EQ(Count("tasks WHERE state=2 AND cancel=1"), 1U);
}

TEST_F(ColdLocks, WhatIsBeingRescuedIsNobodyElsesMeanwhile) {
  const auto ids = Add(1);
  const auto claimed = Claim(*tasks_, ids);
  ASSERT_TRUE(direct_->OpenIncarnations()->Retire("w.1").value());
  const RescueRequest request{"tasks", "w.1", 1, ids};
  const auto rescued = HeldUpAt(
      "INSERT INTO millrace_attempts", [&] { return held_up_->Rescue(request); },
      [&] {
        ExpectBusy(claimed);
        const auto others = tasks_->Rescue(request);
        ASSERT_TRUE(others) << others.error().message;
        EXPECT_TRUE(others->empty()) << "it could run already when the other rescue sets it waiting";
      });
  EXPECT_EQ(*rescued, ids);
  EXPECT_EQ(Count("tasks WHERE state=0 AND attempt=1 AND claimed_by=0"), 1U);
}

TEST_F(ColdLocks, NobodyClaimsWhatFailsSinceItCanNotBeClaimed) {
  const auto ids = Add(1);
  const auto failed = HeldUpAt(
      "INSERT INTO tasks_failed", [&] { return held_up_->FailUnclaimed(Request(ids), "no"); },
      [&] { EXPECT_TRUE(Claim(*tasks_, ids).empty()); });
  EXPECT_EQ(*failed, ids);
  EXPECT_EQ(Count("tasks_failed WHERE attempt=0"), 1U);
  ExpectNothingLostOrDoubled(1);
}

// The entry of a task that has ended meanwhile would keep its key for ever.
TEST_F(ColdLocks, WhoseKeyIsBeingEnteredIsSettledAfterwards) {
  sql_->Ask("INSERT INTO tasks (handler,biz_key) VALUES ('noop','k')");
  const auto claimed = Claim(*tasks_, {1});
  const auto confirmed = HeldUpAt(
      "INSERT INTO tasks_keys", [&] { return held_up_->ConfirmKeys("w.1", claimed); },
      [&] { ExpectBusy(claimed); });
  ASSERT_EQ(confirmed->size(), 1U);
  EXPECT_TRUE((*confirmed)[0].mine);
  EXPECT_EQ(Count("tasks WHERE state=2"), 1U);
}

TEST_F(ColdLocks, NobodyReleasesWhatIsEndedSinceItWasHeldForLong) {
  const auto ids = Add(1);
  const auto operations = direct_->OpenOperations();
  ASSERT_TRUE(operations->Apply(TaskAction::Hold, "tasks", ids, "test"));
  sql_->Ask("UPDATE tasks SET updated_at=updated_at - INTERVAL 2 HOUR");
  const auto pruning = proxied_->OpenPruning();
  const auto ended = HeldUpAt(
      "INSERT INTO tasks_done",
      [&] {
        return pruning->EndHeld({"tasks", {{"noop", std::chrono::hours(1)}}}, "", 10);
      },
      [&] { EXPECT_FALSE(operations->Apply(TaskAction::Release, "tasks", ids, "test")); });
  EXPECT_EQ(ended->removed, 1U);
  EXPECT_EQ(Count("tasks_done WHERE state=4"), 1U);
  ExpectNothingLostOrDoubled(1);
}

}  // namespace
}  // namespace millrace::engine
