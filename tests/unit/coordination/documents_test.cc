#include "coordinator/coordination/documents.h"

#include <gmock/gmock.h>

#include "coordinator/coordination/config_change.h"
#include "coordinator/coordination/fixed_nodes.h"

namespace millrace::engine {
namespace {

using testing::HasSubstr;

TEST(DocumentsTest, AWorkerIsReadBackAsItWasWritten) {
  WorkerDocument worker{.host = "h", .pid = 7, .incarnation = "w1.a", .weight = 3};
  EXPECT_EQ(*ReadWorker(ToText(worker)), worker);
  worker.limits.handlers = {{"a", "b"}};
  worker.limits.load_balance = {{0, 1, 2, 40}};
  worker.limits.shards = {{"east"}};
  worker.limits.tables = {{"tasks_000"}};
  worker.databases = {{"main", "2026-11-20 18:00:00.123456"}};
  EXPECT_THAT(ToText(worker), HasSubstr(R"("load_balance":"0-2,40")"));
  EXPECT_EQ(*ReadWorker(ToText(worker)), worker);
}

TEST(DocumentsTest, AnotherVersionsKeysArePassedOver) {
  EXPECT_EQ(ReadWorker(R"({"host":"h","incarnation":"x","new":{"a":[1]}})")->host, "h");
}

TEST(DocumentsTest, WhatCannotBeReadIsSaid) {
  EXPECT_THAT(ReadWorker("rubbish").error().message, HasSubstr("not a JSON object"));
  EXPECT_THAT(ReadWorker(R"({"pid":"seven"})").error().message, HasSubstr("'pid'"));
  EXPECT_THAT(ReadWorker(R"({"weight":0})").error().message, HasSubstr("'weight'"));
  EXPECT_THAT(ReadWorker(R"({"load_balance":"3-1"})").error().message, HasSubstr("'load_balance'"));
  EXPECT_THAT(ReadAssign(R"({"slices":[1]})").error().message, HasSubstr("'slices'"));
  EXPECT_THAT(ReadExpect(R"({"seconds":"long"})").error().message, HasSubstr("'seconds'"));
}

// A hundred thousand levels fit into a node; what goes through them by recursion has no stack for them.
TEST(DocumentsTest, WhatIsNestedVeryDeepIsRefusedByEveryReader) {
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const auto with = [&](const std::string& key) { return "{\"" + key + "\":" + deep + "}"; };
  EXPECT_THAT(ReadWorker(with("new")).error().message, HasSubstr("nested more than 32 levels deep"));
  EXPECT_FALSE(ReadWorker(with("handlers")));
  EXPECT_FALSE(ReadLimits(with("max_rows")));
  EXPECT_FALSE(ReadEpoch(with("epoch")));
  EXPECT_FALSE(ReadCandidate(with("unread")));
  EXPECT_FALSE(ReadExpect(with("seconds")));
  EXPECT_FALSE(ReadAssign(with("slices")));
  EXPECT_FALSE(ReadPlan(with("groups")));
  for (const char* part : {"shards", "limits", "breakers"}) EXPECT_FALSE(ReadStatus(with(part)));
  EXPECT_FALSE(ReadChange("0000000007", with("document")));
  EXPECT_TRUE(ReadMadeAgain(with("made_again")).empty());
}

TEST(DocumentsTest, AsDeepAsAConfigurationIsReadAndBracketsInTextsAreNoLevels) {
  const std::string inner(31, '[');
  EXPECT_TRUE(ReadEpoch("{\"new\":" + inner + std::string(31, ']') + "}"));
  EXPECT_FALSE(ReadEpoch("{\"new\":[" + inner + std::string(31, ']') + "]}"));
  EXPECT_EQ(ReadEpoch("{\"leader\":\"\\\"" + std::string(100, '[') + "\"}")->leader,
            "\"" + std::string(100, '['));
}

TEST(DocumentsTest, AnAssignmentAndATermAreReadBack) {
  const AssignDocument assign{3, 9, {"main/tasks/1", "main/tasks/1@a"}, {{"a", {"x"}}, {"default", {"*"}}}};
  EXPECT_EQ(*ReadAssign(ToText(assign)), assign);
  const EpochDocument epoch{4, "w1", "w1.a"};
  EXPECT_EQ(*ReadEpoch(ToText(epoch)), epoch);
}

TEST(DocumentsTest, SharesOfLimitsAreReadBackAndWhatIsNoneIsRefused) {
  AssignDocument assign{3, 9, {}};
  assign.shares = {{"mail", {.rate = 33.33, .concurrency = 2}}, {"sms", {.rate = 1, .permits = 2}}};
  assign.shares_of = "w1.a";
  assign.shares_before = {{"mail", {.rate = 50}}};
  EXPECT_EQ(*ReadAssign(ToText(assign)), assign);
  EXPECT_THAT(ToText(assign), HasSubstr(R"("shares":{"mail":{"rate":33.33,"concurrency":2})"));
  EXPECT_EQ(ReadAssign(R"({"shares":{"mail":{"rate":-1}}})")->shares.at("mail"), LimitShare{});
  EXPECT_THAT(ReadAssign(R"({"shares":{"mail":{"rate":"much"}}})").error().message, HasSubstr("'shares'"));
}

TEST(DocumentsTest, OfAStatusTheLeaderReadsWhatIsInForceAndWhatLimitsAreUsed) {
  const auto status = ReadStatus(
      R"({"incarnation":"w1.a","generation":7,"shards":{"main":{"incarnation":"w1.b"},"away":{}},
          "limits":{"mail":{"uses":2.5,"running":3,"waiting":4,"wants_rate":true}}})");
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->generation, 7u);
  EXPECT_EQ(status->shares_generation, 7u) << "an older program tells of the whole alone";
  EXPECT_EQ(status->lives, std::vector<std::string>{"w1.b"});
  EXPECT_EQ(status->limits.at("mail"),
            (LimitUse{.rate = 2.5, .running = 3, .placed = 3, .waiting = 4, .wants_rate = true}));
  EXPECT_FALSE(ReadStatus("[]"));
  EXPECT_FALSE(ReadStatus(R"({"limits":[1]})"));
}

TEST(DocumentsTest, WhatTheLeaderTellsOfThePlanIsReadBack) {
  const PlanDocument plan{3,
                          64,
                          2,
                          true,
                          {{"mail", {"send_mail"}}},
                          1,
                          {"main/tasks/7@mail"},
                          {"main: typo"},
                          {"shard east can't be read"},
                          1,
                          {{"w2", "2026-11-20T18:00:15Z"}}};
  EXPECT_EQ(*ReadPlan(ToText(plan)), plan);
  EXPECT_THAT(ReadPlan(R"({"holding":"yes"})").error().message, HasSubstr("'holding' has a wrong type"));
}

TEST(DocumentsTest, AnAnnouncementWithoutDataIsForAMinute) { EXPECT_EQ(ReadExpect("")->seconds, 60u); }

TEST(DocumentsTest, NamesAreSortedAsTheyAreRead) {
  const auto limits = ReadLimits(R"({"handlers":["c","b"],"shards":["y","x"],"tables":["u","t"]})");
  ASSERT_TRUE(limits);
  const WorkerLimits sorted{.handlers = {{"b", "c"}}, .shards = {{"x", "y"}}, .tables = {{"t", "u"}}};
  EXPECT_EQ(*limits, sorted);
  EXPECT_EQ(ReadWorker(R"({"handlers":["c","b"],"shards":["y","x"],"tables":["u","t"]})")->limits, sorted);
}

TEST(DocumentsTest, LimitsOfRoundsAreReadBack) {
  const LimitsDocument limits{{.handlers = {{"a"}}}, {{"report", 500}}};
  const auto read = ReadLimits(ToText(limits));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->max_rows, limits.max_rows);
  EXPECT_EQ(read->handlers, limits.handlers);
  EXPECT_EQ(ToText(LimitsDocument{}).find("max_rows"), std::string::npos) << "older workers read the rest";
  EXPECT_FALSE(ReadLimits(R"({"max_rows":{"report":0}})"));
  EXPECT_FALSE(ReadLimits(R"({"max_rows":{"report":-1}})"));
  EXPECT_FALSE(ReadLimits(R"({"max_rows":{"report":"many"}})"));
}

TEST(DocumentsTest, AWorkerThatLimitsLeaveNothingIsReadBack) {
  WorkerDocument worker{.host = "h", .incarnation = "w1.a"};
  worker.limits.load_balance = {{0, 1}};
  worker.limits = Both(worker.limits, *ReadLimits(R"({"handlers":[],"load_balance":"7"})"));
  const auto read = ReadWorker(ToText(worker));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->limits.load_balance, std::vector<std::uint32_t>());
  EXPECT_EQ(read->limits.handlers, std::vector<std::string>());
}

TEST(DocumentsTest, AnExpectationIsNeverLongerThanADay) {
  EXPECT_EQ(ReadExpect(R"({"seconds":86401})")->seconds, 86400u);
  EXPECT_EQ(ReadExpect(R"({"seconds":9999999999})")->seconds, 86400u);
  EXPECT_EQ(ReadExpect(R"({"seconds":-1})")->seconds, 0u);
  EXPECT_EQ(ReadExpect("{}")->seconds, 60u);
  EXPECT_FALSE(ReadExpect(R"({"seconds":"1d"})"));
}

}  // namespace
}  // namespace millrace::engine
