#include <gmock/gmock.h>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const WallTime kFirstFiring{std::chrono::days(20'000)};

FanOut Bill(WallTime firing = kFirstFiring) {
  return {.schedule = "bill",
          .firing = firing,
          .handler = "statement",
          .table = "tasks",
          .query = "SELECT id FROM customers -- 'so'",
          .key = "{id}-{month}",
          .zone = "Europe/Berlin"};
}

FanOutPage Page(std::vector<std::string> keys, const std::string& place) {
  FanOutPage page{.place = place};
  for (const std::string& key : keys) page.tasks.push_back({.handler = "statement", .biz_key = key});
  return page;
}

void Enter(Store& store, const FanOut& fan_out) {
  const auto begun =
      store.OpenSchedules()->RunNow(fan_out.schedule, {fan_out.firing, fan_out.table, fan_out}, "ann");
  ASSERT_TRUE(begun) << begun.error().message;
}

FanOut TheOne(FanOutStore& fan_outs) {
  const auto all = fan_outs.UnderWay();
  EXPECT_TRUE(all) << all.error().message;
  EXPECT_THAT(*all, SizeIs(1));
  return all->empty() ? Bill() : all->at(0);
}

FanOutStep Must(const Result<FanOutStep>& step) {
  EXPECT_TRUE(step) << step.error().message;
  return step ? *step : FanOutStep();
}

TEST_P(SqlStoreContract, AFanOutStandsAsItWasBegunTheOldestFirst) {
  const auto fan_outs = store().OpenFanOuts();
  EXPECT_THAT(*fan_outs->UnderWay(), IsEmpty());
  Enter(store(), Bill(kFirstFiring + std::chrono::hours(1)));
  Enter(store(), Bill());
  Enter(store(), Bill());  // the same firing is one
  const auto all = fan_outs->UnderWay();
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_THAT(*all, SizeIs(2));
  EXPECT_EQ(all->at(0).firing, kFirstFiring);
  EXPECT_EQ(all->at(0).schedule, "bill");
  EXPECT_EQ(all->at(0).handler, "statement");
  EXPECT_EQ(all->at(0).table, TableName("tasks"));
  EXPECT_EQ(all->at(0).query, Bill().query);
  EXPECT_EQ(all->at(0).key, "{id}-{month}");
  EXPECT_EQ(all->at(0).zone, "Europe/Berlin");
  EXPECT_EQ(all->at(0).place, std::nullopt);
}

TEST_P(SqlStoreContract, TheOldestFanOutOfEachScheduleComesBeforeTheSecondOfAny) {
  FanOut mail = Bill(kFirstFiring + std::chrono::hours(2));
  mail.schedule = "mail";
  for (const FanOut& one : {Bill(), Bill(kFirstFiring + std::chrono::hours(1)), mail}) Enter(store(), one);
  const auto all = store().OpenFanOuts()->UnderWay();
  ASSERT_TRUE(all) << all.error().message;
  std::string order;
  for (const FanOut& one : *all) order += one.schedule + " ";
  EXPECT_EQ(order, "bill mail bill ");
}

TEST_P(SqlStoreContract, OfTwoLeadersWhoHaveReadOnePageOneSubmitsIt) {
  Enter(store(), Bill());
  const auto one = store().OpenFanOuts();
  const auto other = store().OpenFanOuts();
  const FanOut seen = TheOne(*one);
  const FanOutPage page = Page({"1-2024-10", "2-2024-10"}, R"([["exact","2"]])");
  const FanOutStep first = Must(one->Step(seen, page));
  EXPECT_FALSE(first.overtaken);
  EXPECT_EQ(first.added, 2U);
  const FanOutStep second = Must(other->Step(seen, page));
  EXPECT_TRUE(second.overtaken);
  EXPECT_EQ(second.added, 0U);
  EXPECT_EQ(*sql().Ask("SELECT count(*) FROM tasks"), "2");
  const FanOut now = TheOne(*other);
  EXPECT_EQ(now.place, page.place);
  EXPECT_EQ(now.submitted, 2U);
  EXPECT_FALSE(Must(other->Step(now, Page({"3-2024-10"}, R"([["exact","3"]])"))).overtaken);
  EXPECT_EQ(*sql().Ask("SELECT count(*) FROM tasks"), "3");
}

// As after a COMMIT of which nobody knows whether it happened: whoever it was goes on from the row.
TEST_P(SqlStoreContract, APageThatIsSentAgainAfterAllChangesNothing) {
  Enter(store(), Bill());
  const auto fan_outs = store().OpenFanOuts();
  const FanOut seen = TheOne(*fan_outs);
  const FanOutPage page = Page({"1"}, R"([["text","1"]])");
  ASSERT_EQ(Must(fan_outs->Step(seen, page)).added, 1U);
  EXPECT_TRUE(Must(fan_outs->Step(seen, page)).overtaken);
  ASSERT_EQ(Must(fan_outs->Step(TheOne(*fan_outs), {.last = true})).added, 0U);
  EXPECT_TRUE(Must(fan_outs->Step(seen, page)).overtaken) << "it has ended meanwhile";
  EXPECT_EQ(*sql().Ask("SELECT count(*) FROM tasks"), "1");
}

TEST_P(SqlStoreContract, AKeyOfAFanOutThatIsTakenIsThereAlready) {
  ASSERT_TRUE(operations().Submit("tasks", std::vector<NewTask>{{.handler = "statement", .biz_key = "2"}}));
  Enter(store(), Bill());
  const auto fan_outs = store().OpenFanOuts();
  EXPECT_EQ(Must(fan_outs->Step(TheOne(*fan_outs), Page({"1", "2", "3", "3"}, R"([["exact","3"]])"))).added,
            2U);
  EXPECT_EQ(*sql().Ask("SELECT count(*) FROM tasks"), "3");
  EXPECT_EQ(TheOne(*fan_outs).submitted, 2U);
}

TEST_P(SqlStoreContract, AFanOutGoesWithItsLastPageAndTheAuditTellsOfIt) {
  Enter(store(), Bill());
  const auto fan_outs = store().OpenFanOuts();
  FanOutPage page = Page({"1"}, R"([["exact","1"]])");
  page.refused = 3;
  Must(fan_outs->Step(TheOne(*fan_outs), page));
  page = Page({"2"}, R"([["exact","2"]])");
  page.last = true;
  page.refused = 1;
  Must(fan_outs->Step(TheOne(*fan_outs), page));
  EXPECT_THAT(*fan_outs->UnderWay(), IsEmpty());
  EXPECT_EQ(*sql().Ask("SELECT detail FROM millrace_audit WHERE action='fan_out_ended'"),
            "2 submitted, 4 refused");
  EXPECT_THAT(*sql().Ask("SELECT subject FROM millrace_audit WHERE action='fan_out_ended'"),
              HasSubstr("schedule/bill/2024-10-04T00:00:00Z"));
}

TEST_P(SqlStoreContract, OfEachScheduleTheLastFanOutThatHasEndedIsTold) {
  const auto fan_outs = store().OpenFanOuts();
  EXPECT_THAT(*fan_outs->Ended(), IsEmpty());
  for (int hour = 0; hour < 2; ++hour) {
    Enter(store(), Bill(kFirstFiring + std::chrono::hours(hour)));
    FanOutPage page = Page({"1", "2"}, R"([["exact","2"]])");
    page.last = true;
    page.refused = 3;
    page.taken = 5;
    Must(fan_outs->Step(TheOne(*fan_outs), page));
  }
  ASSERT_TRUE(sql().NewClient()->Run(
      "INSERT INTO millrace_audit (at,actor,action,subject,detail) VALUES ('2026-11-22 "
      "18:00:00.000000','ann','fan_out_ended','by hand','a note')"));
  const auto ended = fan_outs->Ended();
  ASSERT_TRUE(ended) << ended.error().message;
  ASSERT_THAT(*ended, SizeIs(1));
  const EndedFanOut& bill = ended->at("bill");
  EXPECT_EQ(bill.firing, kFirstFiring + std::chrono::hours(1));
  EXPECT_EQ(bill.submitted, 0U);
  EXPECT_EQ(bill.refused, 3U);
  EXPECT_EQ(bill.taken, 7U) << "of the earlier pages five, and both of the last";
}

TEST_P(SqlStoreContract, AFanOutThatSomebodyStopsAddsNothingMore) {
  Enter(store(), Bill());
  Enter(store(), Bill(kFirstFiring + std::chrono::hours(1)));
  FanOut other = Bill();
  other.schedule = "other";
  Enter(store(), other);
  const auto fan_outs = store().OpenFanOuts();
  const FanOut seen = fan_outs->UnderWay()->at(0);
  EXPECT_EQ(*fan_outs->Stop("bill", "ann"), 2U);
  EXPECT_EQ(*fan_outs->Stop("bill", "ann"), 0U);
  EXPECT_EQ(TheOne(*fan_outs).schedule, "other");
  EXPECT_TRUE(Must(fan_outs->Step(seen, Page({"1"}, R"([["exact","1"]])"))).overtaken);
  EXPECT_EQ(*sql().Ask("SELECT count(*) FROM tasks"), "0");
  EXPECT_EQ(*sql().Ask("SELECT actor FROM millrace_audit WHERE action='fan_outs_stopped'"), "ann");
}

// A row that the database refuses takes its page back with it.
TEST_P(SqlStoreContract, APageOfAFanOutIsWholeOrNotAtAll) {
  Enter(store(), Bill());
  const auto fan_outs = store().OpenFanOuts();
  FanOutPage page = Page({"1", "2"}, R"([["exact","2"]])");
  page.tasks[1].params = "no JSON";
  EXPECT_FALSE(fan_outs->Step(TheOne(*fan_outs), page));
  EXPECT_EQ(*sql().Ask("SELECT count(*) FROM tasks"), "0");
  EXPECT_EQ(TheOne(*fan_outs).place, std::nullopt);
}

TEST_P(SqlStoreContract, AScheduleIsInWorkWhileItsFanOutIsUnderWay) {
  const auto schedules = store().OpenSchedules();
  ScheduleRow row{.name = "bill",
                  .state = {.rhythm = "@daily", .anchor = kFirstFiring, .next = kFirstFiring}};
  ASSERT_TRUE(*schedules->Make(row));
  row = schedules->Rows()->rows.at(0);
  ScheduleStep step{.to = row.state, .firing = ScheduledFiring{kFirstFiring, "tasks", Bill()}};
  step.to.next = kFirstFiring + std::chrono::days(1);
  step.to.last = kFirstFiring;
  const auto stepped = schedules->Step(row, step);
  ASSERT_TRUE(stepped) << stepped.error().message;
  EXPECT_TRUE(stepped->moved);
  EXPECT_EQ(stepped->task, std::nullopt);
  EXPECT_EQ(*sql().Ask("SELECT count(*) FROM tasks"), "0") << "its rows are its tasks";
  row = schedules->Rows()->rows.at(0);
  EXPECT_EQ(row.task, std::nullopt);
  EXPECT_TRUE(schedules->Last(row)->in_work);
  const auto fan_outs = store().OpenFanOuts();
  Must(fan_outs->Step(TheOne(*fan_outs), {.last = true}));
  EXPECT_FALSE(schedules->Last(row)->in_work);
}

}  // namespace
}  // namespace millrace::engine
