#include "framework/policy/pauses.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Pauses Of(const std::vector<std::string>& names) {
  auto pauses = Pauses::Parse(names);
  EXPECT_TRUE(pauses) << pauses.error().message;
  return pauses ? *pauses : Pauses{};
}

TEST(PausesTest, NothingIsPausedByDefault) {
  EXPECT_TRUE(Pauses().Empty());
  EXPECT_FALSE(Pauses().Covers("main", "tasks", 0, "noop"));
}

TEST(PausesTest, TheClusterIsEverything) { EXPECT_TRUE(Of({"cluster"}).Covers("main", "tasks", 17, "noop")); }

TEST(PausesTest, AShardAHandlerAndASliceCoverThemselvesAlone) {
  EXPECT_TRUE(Of({"shard:main"}).Covers("main", "tasks", 0, "noop"));
  EXPECT_FALSE(Of({"shard:main"}).Covers("other", "tasks", 0, "noop"));
  EXPECT_TRUE(Of({"handler:noop"}).Covers("other", "tasks", 0, "noop"));
  EXPECT_FALSE(Of({"handler:noop"}).Covers("other", "tasks", 0, "noop.x"));
  const Pauses slice = Of({"slice:main:tasks_000:17"});
  EXPECT_TRUE(slice.Covers("main", "tasks_000", 17, "noop"));
  EXPECT_FALSE(slice.Covers("main", "tasks_000", 16, "noop"));
  EXPECT_FALSE(slice.Covers("main", "tasks_001", 17, "noop"));
  EXPECT_FALSE(slice.Covers("other", "tasks_000", 17, "noop"));
}

TEST(PausesTest, MessagesOfAlertsPassAllButWhatNamesThemOrTheirSlice) {
  for (const char* type : {"millrace.mail", "millrace.webhook"}) {
    EXPECT_FALSE(Of({"cluster", "shard:main"}).Covers("main", "tasks", 17, type));
    EXPECT_TRUE(Of({"cluster", std::string("handler:") + type}).Covers("main", "tasks", 17, type));
    EXPECT_TRUE(Of({"slice:main:tasks:17"}).Covers("main", "tasks", 17, type));
  }
  EXPECT_TRUE(Of({"cluster"}).Covers("main", "tasks", 17, "millrace.other"));
}

TEST(PausesTest, AWorkerIsPausedByItsNameWhateverItsSlicesAre) {
  const Pauses pauses = Of({"worker:host-1.b"});
  EXPECT_TRUE(pauses.CoversWorker("host-1.b"));
  EXPECT_FALSE(pauses.CoversWorker("host-1"));
  EXPECT_FALSE(pauses.CoversWorker(""));
  EXPECT_FALSE(pauses.Covers("main", "tasks", 0, "noop")) << "others do their work";
}

TEST(PausesTest, ABreakerThatIsOpenByHandPausesItsTypeAndOneKeptClosedNothing) {
  const Pauses pauses = Of({"breaker:noop:open", "breaker:mail:close"});
  EXPECT_TRUE(pauses.Covers("main", "tasks", 17, "noop"));
  EXPECT_TRUE(pauses.OpenedByHand("noop"));
  EXPECT_FALSE(pauses.Covers("main", "tasks", 17, "mail"));
  EXPECT_FALSE(pauses.OpenedByHand("mail"));
  EXPECT_FALSE(Of({TrippedName("noop", "w1")}).Covers("main", "tasks", 17, "noop")) << "probes must run";
}

TEST(PausesTest, AWordOfABreakerIsFoundByItsType) {
  const std::vector<std::string> names{"breaker:a:close", "breaker:a:open", "breaker:b:close", "handler:c"};
  const auto hands = BreakerHandsOf(names);
  ASSERT_EQ(hands.size(), 2U);
  EXPECT_EQ(hands.at("a"), BreakerHand::Open);
  EXPECT_EQ(hands.at("b"), BreakerHand::Close);
  EXPECT_EQ(BreakerHandName("b", BreakerHand::Close), "breaker:b:close");
  EXPECT_FALSE(Pauses::Parse(std::vector<std::string>{"breaker:a:auto"}));
}

TEST(PausesTest, ABreakerThatAWorkerTellsOfIsNoWordOfAnOperator) {
  const std::vector<std::string> names{TrippedName("pay", "host-1.b")};
  EXPECT_TRUE(Pauses::Parse(names));
  EXPECT_TRUE(BreakerHandsOf(names).empty());
  ASSERT_TRUE(ReadTripped(names[0]));
  EXPECT_EQ(ReadTripped(names[0])->type, "pay");
  EXPECT_EQ(ReadTripped(names[0])->worker, "host-1.b");
  EXPECT_FALSE(ReadTripped("breaker:pay:open"));
}

TEST(PausesTest, ANameTwiceIsOnePause) {
  EXPECT_THAT(Of({"shard:b", "cluster", "shard:b"}).Names(), ElementsAre("cluster", "shard:b"));
}

TEST(PausesTest, ANameThatPausesNothingIsRefusedAndChangesNothing) {
  for (const char* name : {"",
                           "clusters",
                           "cluster:x",
                           "shard",
                           "shard:",
                           "shard:A",
                           "handler:9",
                           "handler:a:b",
                           "slice",
                           "slice:main",
                           "slice:main:tasks",
                           "slice:main:tasks:-1",
                           "slice:main:tasks:16384",
                           "slice:main:tasks:017",
                           "slice:main:tasks:1x",
                           "slice:main:Tasks:1",
                           "Cluster",
                           " cluster",
                           "worker:",
                           "worker:.a",
                           "worker:a b",
                           "worker:a:b"}) {
    Pauses pauses = Of({"handler:noop"});
    const Status added = pauses.Add(name);
    ASSERT_FALSE(added) << name;
    EXPECT_EQ(added.error().code, ErrorCode::Invalid);
    EXPECT_THAT(added.error().message, HasSubstr("slice:SHARD:TABLE:NUMBER"));
    EXPECT_EQ(pauses, Of({"handler:noop"}));
  }
  EXPECT_FALSE(Pauses::Parse(std::vector<std::string>{"cluster", "rubbish"}));
}

}  // namespace
}  // namespace millrace::engine
