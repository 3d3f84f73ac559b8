// `millrace schedule` in a cluster: what it writes into the part `schedules`, and what it refuses.
#include <nlohmann/json.hpp>

#include "tests/integration/command/cluster_fixture.h"

namespace millrace::engine::testing {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

class ScheduleClusterTest : public ClusterCommandTest {
 protected:
  json Document() { return json::parse(Look("/config/schedules").data, nullptr, false); }
};

TEST_F(ScheduleClusterTest, AScheduleIsWrittenAsConfigSetWouldAndANameInUseIsRefused) {
  const ProcessResult added =
      Ask("schedule add nightly --cron \"0 2 * * *\" --zone Europe/Berlin --handler noop --overlap skip "
          "--catch-up none");
  EXPECT_EQ(added.exit_code, 0) << added.output;
  EXPECT_THAT(added.output, AllOf(HasSubstr("config/schedules is now version"),
                                  HasSubstr("+ schedules.nightly.cron"), HasSubstr(" 02:00 +0")));
  EXPECT_EQ(Document(), json::parse(R"({"nightly":{"cron":"0 2 * * *","zone":"Europe/Berlin","handler":"noop",
      "catch_up":"none","overlap":"skip"}})"));
  EXPECT_THAT(Ask("config history schedules").output, HasSubstr("nightly"));

  const ProcessResult again = Ask("schedule add nightly --every 5m --handler noop");
  EXPECT_EQ(again.exit_code, 4) << again.output;
  EXPECT_THAT(again.output, HasSubstr("--replace"));
  EXPECT_EQ(Ask("schedule add nightly --every 5m --handler noop --replace --dry-run").exit_code, 0);
  EXPECT_EQ(Document()["nightly"].count("every"), 0u);
  EXPECT_EQ(Ask("schedule add nightly --every 5m --handler noop --replace").exit_code, 0);
  EXPECT_EQ(Document(), json::parse(R"({"nightly":{"every":"5m","handler":"noop"}})"));
}

TEST_F(ScheduleClusterTest, ItIsPausedResumedAndRemoved) {
  ASSERT_EQ(Ask("schedule add sync --every 5m --handler noop --paused").exit_code, 0);
  ASSERT_EQ(Ask("schedule add other --every 5m --handler noop").exit_code, 0);
  EXPECT_EQ(Ask("schedule resume sync").exit_code, 0);
  EXPECT_FALSE(Document()["sync"].contains("paused"));
  EXPECT_EQ(Ask("schedule resume sync").exit_code, 1);
  EXPECT_EQ(Ask("schedule pause sync").exit_code, 0);
  EXPECT_EQ(Document()["sync"]["paused"], true);
  EXPECT_EQ(Ask("schedule remove sync --dry-run").exit_code, 0);
  EXPECT_TRUE(Document().contains("sync"));
  EXPECT_EQ(Ask("schedule remove sync").exit_code, 0);
  EXPECT_EQ(Document(), json::parse(R"({"other":{"every":"5m","handler":"noop"}})"));
}

TEST_F(ScheduleClusterTest, WhoPausesOrRemovesItIsToldOfAFanOutThatGoesOn) {
  ASSERT_EQ(Ask("schedule add bills --cron \"0 2 1 * *\" --handler noop --from-query \"SELECT 1 AS id\" "
                "--key \"{id}-{month}\"")
                .exit_code,
            0);
  EXPECT_THAT(Ask("schedule pause bills").output, ::testing::Not(HasSubstr("schedule stop")));
  ASSERT_EQ(Ask("schedule resume bills").exit_code, 0);
  ASSERT_EQ(Ask("schedule run bills").exit_code, 0);  // nobody leads: it stands there
  const char* const way_out = "millrace schedule stop bills";
  EXPECT_THAT(Ask("schedule pause bills").output, HasSubstr(way_out));
  EXPECT_THAT(Ask("schedule remove bills").output, HasSubstr(way_out));
  EXPECT_THAT(Ask("schedule stop bills").output, HasSubstr("1 fan-out of bills stopped"))
      << "it is gone from there";
}

TEST_F(ScheduleClusterTest, AHandlerIsOneThatAWorkerHas) {
  Register("w1", R"(["noops"])");
  const ProcessResult wrong = Ask("schedule add sync --every 5m --handler noop");
  EXPECT_EQ(wrong.exit_code, 2) << wrong.output;
  EXPECT_THAT(wrong.output, AllOf(HasSubstr("did you mean 'noops'?"), HasSubstr("--force")));
  EXPECT_EQ(Document(), json::object());
}

TEST_F(ScheduleClusterTest, AShardAndATableAreThoseThatAreThere) {
  const ProcessResult wrong = Ask("schedule add sync --every 5m --handler noop --table taks");
  EXPECT_EQ(wrong.exit_code, 2) << wrong.output;
  EXPECT_THAT(wrong.output, AllOf(HasSubstr("--table"), HasSubstr("no task table"), HasSubstr("tasks")));
  EXPECT_EQ(Ask("schedule add sync --every 5m --handler noop --table taks --force").exit_code, 0);
  EXPECT_EQ(Ask("schedule add good --every 5m --handler noop --shard main --table tasks").exit_code, 0);
}

TEST_F(ScheduleClusterTest, ADocumentThatIsRefusedIsSaid) {
  Type(Set("/config/schedules", R"({"x":{"cron":"0 0 30 2 *","handler":"noop"}})"));
  const ProcessResult list = Ask("schedule list");
  EXPECT_EQ(list.exit_code, 1) << list.output;
  EXPECT_THAT(list.output, AllOf(HasSubstr("not in force"), HasSubstr("schedules.x.cron")));
}

}  // namespace
}  // namespace millrace::engine::testing
