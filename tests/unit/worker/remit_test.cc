#include "framework/worker/remit.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<const Pauses> Paused(const std::vector<std::string>& names) {
  return std::make_shared<const Pauses>(*Pauses::Parse(names));
}

TEST(RemitTest, NothingIsItsOwnAtFirst) { EXPECT_FALSE(Remit("main").Owns("tasks", 0, "noop")); }

TEST(RemitTest, ATableMayStandSeveralTimesWithOtherHandlers) {
  Remit remit("main");
  EXPECT_TRUE(
      remit.Follow({{"tasks", false, {1, 2}, {{"a"}}}, {"tasks", false, {2, 3}, {{"b", "c"}}}}, Paused({})));
  EXPECT_TRUE(remit.Owns("tasks", 1, "a"));
  EXPECT_FALSE(remit.Owns("tasks", 1, "b"));
  EXPECT_TRUE(remit.Owns("tasks", 2, "a"));
  EXPECT_TRUE(remit.Owns("tasks", 2, "c"));
  EXPECT_FALSE(remit.Owns("tasks", 3, "a"));
  EXPECT_FALSE(remit.Owns("tasks_001", 1, "a"));
}

TEST(RemitTest, ItTellsWhetherAnAnswerIsNew) {
  Remit remit("main");
  EXPECT_TRUE(remit.Follow({{"tasks", true, {}}}, Paused({})));
  EXPECT_FALSE(remit.Follow({{"tasks", true, {}}}, Paused({})));
  EXPECT_TRUE(remit.Follow({{"tasks", true, {}}}, Paused({"cluster"})));
  EXPECT_TRUE(remit.Follow({{"tasks", false, {1}}}, Paused({"cluster"})));
  EXPECT_TRUE(remit.FollowShard({"handler:a"}));
  EXPECT_FALSE(remit.FollowShard({"handler:a"}));
}

TEST(RemitTest, APauseHoldsByEitherRouteUntilThatRouteLiftsIt) {
  Remit remit("main");
  remit.Follow({{"tasks", true, {}}}, Paused({"handler:a"}));
  remit.FollowShard({"shard:other", "slice:main:tasks:3"});
  EXPECT_TRUE(remit.Paused("tasks", 0, "a"));
  EXPECT_TRUE(remit.Paused("tasks", 3, "b"));
  EXPECT_FALSE(remit.Paused("tasks", 0, "b"));
  EXPECT_THAT(remit.PauseNames(), ElementsAre("handler:a", "shard:other", "slice:main:tasks:3"));
  remit.FollowShard({});
  EXPECT_FALSE(remit.Paused("tasks", 3, "b"));
  EXPECT_TRUE(remit.Paused("tasks", 0, "a"));
}

TEST(RemitTest, ANameInTheShardThatPausesNothingLeavesTheOthersInForce) {
  Remit remit("main");
  remit.FollowShard({"everything", "handler:a"});
  EXPECT_TRUE(remit.Paused("tasks", 0, "a"));
  EXPECT_FALSE(remit.Paused("tasks", 0, "b"));
}

}  // namespace
}  // namespace millrace::engine
