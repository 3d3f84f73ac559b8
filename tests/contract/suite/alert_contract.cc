#include <gmock/gmock.h>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using To = Settlement::To;

std::vector<std::string> KindsAfter(AlertStore& alerts, std::uint64_t after) {
  const auto found = alerts.Events(after);
  EXPECT_TRUE(found) << found.error().message;
  std::vector<std::string> kinds;
  for (const ShardEvent& event : found->events) kinds.push_back(event.kind + " " + event.subject);
  return kinds;
}

TEST_P(StoreContract, TheGreatestKeysOfAPrefixAreReadFirstAndThoseOfOtherTypesNever) {
  const auto alerts = store().OpenAlerts();
  std::vector<NewTask> added(5);
  const char* keys[] = {"alert/a/0000000001/firing/x", "alert/a/0000000002/over/x",
                        "alert/b/0000000009/over/x", "alert/a0", "alert/a/9000000000/x"};
  for (std::size_t i = 0; i < added.size(); ++i) {
    added[i].handler = i == 4 ? "noop" : "millrace.mail";
    added[i].biz_key = keys[i];
  }
  const auto report = operations().Submit("tasks", added);
  ASSERT_TRUE(report) << report.error().message;
  const auto keyed = alerts->Keyed("millrace.mail", "alert/a/", 10);
  ASSERT_TRUE(keyed) << keyed.error().message;
  ASSERT_EQ(keyed->size(), 2U);
  EXPECT_EQ(keyed->at(0).key, keys[1]);
  EXPECT_EQ(keyed->at(0).handler, "millrace.mail");
  EXPECT_EQ(keyed->at(0).task, (TaskKey{"tasks", report->ids[1]}));
  EXPECT_LT(keyed->at(0).ago, std::chrono::minutes(1));
  EXPECT_EQ(keyed->at(1).key, keys[0]);
  EXPECT_EQ(alerts->Keyed("millrace.mail", "alert/a/", 1)->size(), 1U);
  EXPECT_TRUE(alerts->Keyed("millrace.mail", "alert/c/", 1)->empty());
}

TEST_P(StoreContract, ALifeThatIsMarkedDeadOrBuriedIsAnEventAndOneThatLeavesIsNot) {
  const auto alerts = store().OpenAlerts();
  for (const char* id : {"a.1", "b.1", "c.1"}) Register(id);
  ASSERT_TRUE(*incarnations().MarkDead("a.1", 0));
  ASSERT_FALSE(*incarnations().MarkDead("a.1", 0));
  ASSERT_TRUE(*incarnations().Retire("b.1"));
  ASSERT_TRUE(*incarnations().Bury("c.1"));
  ASSERT_FALSE(*incarnations().Bury("b.1"));
  EXPECT_THAT(KindsAfter(*alerts, 0), ElementsAre("worker_lost a.1", "worker_lost c.1"));
}

TEST_P(StoreContract, ACrashIsAnEventOnce) {
  const auto alerts = store().OpenAlerts();
  const std::uint64_t id = Add();
  const Task task = ClaimOne(id);
  const std::vector<Crash> crashes = {{task.key, task.attempt}};
  ASSERT_EQ(*incarnations().ChargeCrashes("w.1", crashes), 1U);
  ASSERT_EQ(*incarnations().ChargeCrashes("w.1", crashes), 0U);
  EXPECT_THAT(KindsAfter(*alerts, 0), ElementsAre("crash " + ToString(task.key)));
  EXPECT_EQ(alerts->Events(0)->events.front().type, task.handler);
}

TEST_P(StoreContract, EventsAreReadFromWhereTheLastLookEndedAndPeoplesActionsAreNone) {
  const auto alerts = store().OpenAlerts();
  ASSERT_TRUE(alerts->Note(kSettleRefused, "w.1", "tasks/1", "noop"));
  ASSERT_TRUE(operations().SetPause("cluster", "ann", true));
  const auto first = alerts->Events(0);
  ASSERT_TRUE(first);
  ASSERT_EQ(first->events.size(), 1U);
  EXPECT_EQ(first->events[0].actor, "w.1");
  EXPECT_LT(first->events[0].ago, std::chrono::minutes(1));
  EXPECT_GT(first->greatest, first->events[0].id) << "that of what ann did";
  ASSERT_TRUE(alerts->Note(kSettleRefused, "w.1", "tasks/2", ""));
  EXPECT_THAT(KindsAfter(*alerts, first->events[0].id), ElementsAre("settle_refused tasks/2"));
  EXPECT_THAT(KindsAfter(*alerts, first->greatest), ElementsAre("settle_refused tasks/2"));
}

TEST_P(StoreContract, FiringsThatLapsedAreAnEventAndATaskRunNowIsNone) {
  const auto alerts = store().OpenAlerts();
  const auto schedules = store().OpenSchedules();
  ASSERT_TRUE(alerts->Note(kScheduleLapsed, "", "nightly", ""));
  const auto rows = schedules->Rows();
  ASSERT_TRUE(rows) << rows.error().message;
  ASSERT_TRUE(schedules->RunNow("nightly", {rows->now, "tasks", NewTask{.handler = "noop"}}, "ann"));
  EXPECT_THAT(KindsAfter(*alerts, 0), ElementsAre("schedule_lapsed nightly"));
}

TEST_P(StoreContract, FailedTasksAreThoseThatAreInThePoolNow) {
  const auto alerts = store().OpenAlerts();
  std::vector<Settlement> ends;
  std::vector<std::uint64_t> ids = AddDue(3);
  for (const Task& task : Claim(ids)) ends.push_back(End(task, To::Failed, "no"));
  Settle(ends);
  EXPECT_EQ(alerts->Failed()->at("noop"), 3U);
  ASSERT_TRUE(operations().Apply(TaskAction::Retry, "tasks", std::vector{ids[0]}, "ann"));
  ASSERT_TRUE(operations().Apply(TaskAction::Cancel, "tasks", std::vector{ids[1]}, "ann"));
  EXPECT_EQ(alerts->Failed()->at("noop"), 1U);
  ASSERT_TRUE(operations().Apply(TaskAction::Cancel, "tasks", std::vector{ids[2]}, "ann"));
  EXPECT_TRUE(alerts->Failed()->empty());
}

}  // namespace
}  // namespace millrace::engine
