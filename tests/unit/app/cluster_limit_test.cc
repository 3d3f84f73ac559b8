#include "coordinator/app/cluster/cluster_limit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;

LimitTargets KnownLimits() {
  return {.types = {{"noop", "send_mail"}},
          .tables = {{"east", {{"tasks", 16, {}}}}, {"main", {{"tasks", 64, {99}}, {"tasks_big", 256, {}}}}}};
}

std::string Refusal(const WorkerLimits& limits, const LimitTargets& known = KnownLimits()) {
  const Status checked = CheckLimits({limits}, known);
  if (checked) return "";
  EXPECT_EQ(checked.error().code, ErrorCode::Invalid);
  return checked.error().message;
}

TEST(ClusterLimitTest, WhatIsThereMayBeALimit) {
  EXPECT_EQ(Refusal({.handlers = {{"noop"}}, .shards = {{"main"}}}), "");
  EXPECT_EQ(Refusal({.tables = {{"east/tasks", "tasks_big"}}}), "");
  EXPECT_EQ(Refusal({.load_balance = {{0, 63, 255}}}), "");
}

TEST(ClusterLimitTest, AnUnknownNameIsRefusedWithTheNearest) {
  EXPECT_THAT(Refusal({.handlers = {{"send_mial"}}}),
              AllOf(HasSubstr("task type 'send_mial'"), HasSubstr("send_mail"), HasSubstr("--force")));
  EXPECT_THAT(Refusal({.shards = {{"mian"}}}), AllOf(HasSubstr("no shard 'mian'"), HasSubstr("main")));
  EXPECT_THAT(Refusal({.tables = {{"main/taks"}}}),
              AllOf(HasSubstr("no task table 'main/taks'"), HasSubstr("tasks")));
}

TEST(ClusterLimitTest, ANumberBeyondTheTablesThatAreLeftIsRefused) {
  EXPECT_THAT(Refusal({.load_balance = {{300}}}), AllOf(HasSubstr("number 300"), HasSubstr("0 to 255")));
  EXPECT_THAT(Refusal({.load_balance = {{16}}, .shards = {{"east"}}}), HasSubstr("0 to 15"));
  EXPECT_EQ(Refusal({.load_balance = {{99}}, .tables = {{"main/tasks"}}}), "") << "rows still stand in it";
  EXPECT_THAT(Refusal({.load_balance = {{98}}, .tables = {{"main/tasks"}}}), HasSubstr("0 to 63"));
}

TEST(ClusterLimitTest, WhatIsNotKnownIsNotHeldAgainstAName) {
  LimitTargets known = KnownLimits();
  known.types.reset();
  EXPECT_EQ(Refusal({.handlers = {{"any"}}}, known), "");
  known.all_read = false;
  EXPECT_EQ(Refusal({.load_balance = {{300}}, .shards = {{"west"}}, .tables = {{"other"}}}, known), "");
}

TEST(ClusterLimitTest, RowsOfARoundAreForTypesThatAreScannedInRounds) {
  LimitTargets known = KnownLimits();
  known.in_rounds = {"report", "statement"};
  EXPECT_TRUE(CheckLimits({{}, {{"report", 500}}}, known));
  EXPECT_THAT(CheckLimits({{}, {{"reprot", 500}}}, known).error().message,
              AllOf(HasSubstr("'reprot' is not scanned in rounds"), HasSubstr("report")));
  known.in_rounds.reset();
  EXPECT_TRUE(CheckLimits({{}, {{"reprot", 500}}}, known));
}

TEST(ClusterLimitTest, WhatIsNamedGoesBeforeItsOwnKindAndTheOthersStay) {
  LimitsDocument standing{{.handlers = {{"send_mail"}}, .load_balance = {{0, 1, 2}}}};
  standing.max_rows = {{"statement", 100}};
  LimitsDocument rows;
  rows.max_rows = {{"report", 500}};
  EXPECT_EQ(LimitsText(WithNamed(standing, rows)),
            "load-balance numbers 0-2; task types send_mail; 500 rows of report in a round");
  EXPECT_EQ(LimitsText(WithNamed(standing, {{.handlers = {{"noop"}}, .shards = {{"east", "main"}}}})),
            "load-balance numbers 0-2; task types noop; shards east, main; 100 rows of statement in a round");
  EXPECT_EQ(LimitsText(WithNamed({}, {{.load_balance = {{7}}, .tables = {{"main/tasks"}}}})),
            "load-balance numbers 7; tables main/tasks");
  EXPECT_EQ(LimitsText(LimitsDocument{}), "");
}

TEST(ClusterLimitTest, RowsOfARoundAreATypeAndANumber) {
  const std::map<std::string, std::uint32_t> both{{"mail.monthly", 1}, {"report", 500}};
  EXPECT_EQ(*ReadMaxRows({"report=500", "mail.monthly=1"}), both);
  for (const char* wrong :
       {"report", "report=", "report=0", "report=-1", "report=1x", "=5", "Report=5", "report=4294967297"}) {
    const auto read = ReadMaxRows({wrong});
    ASSERT_FALSE(read) << wrong;
    EXPECT_EQ(read.error().code, ErrorCode::Invalid);
    EXPECT_THAT(read.error().message, HasSubstr("--max-rows report=500"));
  }
}

}  // namespace
}  // namespace millrace::engine
