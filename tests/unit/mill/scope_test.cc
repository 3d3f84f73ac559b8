#include "framework/mill/scope.h"

#include <gmock/gmock.h>

#include <utility>

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;

std::shared_ptr<const Pauses> Paused(const std::vector<std::string>& names) {
  return std::make_shared<const Pauses>(*Pauses::Parse(names));
}

TEST(ScopeTest, NothingIsItsOwnAtFirst) { EXPECT_FALSE(Scope("main").Owns("tasks", 0, "noop")); }

TEST(ScopeTest, ATableMayStandSeveralTimesWithOtherHandlers) {
  Scope scope("main");
  EXPECT_TRUE(
      scope.Follow({{"tasks", false, {1, 2}, {{"a"}}}, {"tasks", false, {2, 3}, {{"b", "c"}}}}, Paused({})));
  EXPECT_TRUE(scope.Owns("tasks", 1, "a"));
  EXPECT_FALSE(scope.Owns("tasks", 1, "b"));
  EXPECT_TRUE(scope.Owns("tasks", 2, "a"));
  EXPECT_TRUE(scope.Owns("tasks", 2, "c"));
  EXPECT_FALSE(scope.Owns("tasks", 3, "a"));
  EXPECT_FALSE(scope.Owns("tasks_001", 1, "a"));
}

TEST(ScopeTest, ARingTouchesWhereOneOfItsSlicesIsItsOwn) {
  Scope scope("main");
  EXPECT_FALSE(scope.Touches({})) << "it has nothing";
  scope.Follow({{"tasks", false, {1, 7}, {{"a"}}}, {"tasks_001", true, {}}}, Paused({}));
  EXPECT_TRUE(scope.Touches({}));
  EXPECT_TRUE(scope.Touches({kDefaultTable, {}}));
  EXPECT_TRUE(scope.Touches({kDefaultTable, {3, 7}}));
  EXPECT_FALSE(scope.Touches({kDefaultTable, {3, 8}}));
  EXPECT_TRUE(scope.Touches({TableName("tasks_001"), {8}}));
  EXPECT_FALSE(scope.Touches({TableName("tasks_002"), {}}));
}

TEST(ScopeTest, ItTellsWhetherAnAnswerIsNew) {
  Scope scope("main");
  EXPECT_TRUE(scope.Follow({{"tasks", true, {}}}, Paused({})));
  EXPECT_FALSE(scope.Follow({{"tasks", true, {}}}, Paused({})));
  EXPECT_TRUE(scope.Follow({{"tasks", true, {}}}, Paused({"cluster"})));
  EXPECT_TRUE(scope.Follow({{"tasks", false, {1}}}, Paused({"cluster"})));
  EXPECT_TRUE(scope.FollowShard({"handler:a"}));
  EXPECT_FALSE(scope.FollowShard({"handler:a"}));
}

TEST(ScopeTest, ItsVersionChangesWithEachNewAnswerAlone) {
  Scope scope("main");
  std::uint64_t version = scope.Version();
  const auto is_new = [&] { return std::exchange(version, scope.Version()) != version; };
  scope.Follow({{"tasks", true, {}}}, Paused({}));
  EXPECT_TRUE(is_new());
  scope.Follow({{"tasks", true, {}}}, Paused({}));
  EXPECT_FALSE(is_new());
  scope.Follow({{"tasks", true, {}}}, Paused({"cluster"}));
  EXPECT_TRUE(is_new());
  scope.Follow({{"tasks", false, {1}}}, Paused({"cluster"}));
  EXPECT_TRUE(is_new());
  scope.FollowShard({"handler:a"});
  EXPECT_TRUE(is_new());
  scope.FollowShard({"handler:a"});
  EXPECT_FALSE(is_new());
}

TEST(ScopeTest, APauseHoldsByEitherRouteUntilThatRouteLiftsIt) {
  Scope scope("main");
  scope.Follow({{"tasks", true, {}}}, Paused({"handler:a"}));
  scope.FollowShard({"shard:other", "slice:main:tasks:3"});
  EXPECT_TRUE(scope.Paused("tasks", 0, "a"));
  EXPECT_TRUE(scope.Paused("tasks", 3, "b"));
  EXPECT_FALSE(scope.Paused("tasks", 0, "b"));
  EXPECT_THAT(scope.PauseNames(), ElementsAre("handler:a", "shard:other", "slice:main:tasks:3"));
  scope.FollowShard({});
  EXPECT_FALSE(scope.Paused("tasks", 3, "b"));
  EXPECT_TRUE(scope.Paused("tasks", 0, "a"));
}

TEST(ScopeTest, ANameInTheShardThatPausesNothingLeavesTheOthersInForce) {
  Scope scope("main");
  scope.FollowShard({"everything", "handler:a"});
  EXPECT_TRUE(scope.Paused("tasks", 0, "a"));
  EXPECT_FALSE(scope.Paused("tasks", 0, "b"));
}

TEST(ScopeTest, AWorkerThatIsPausedStartsNothingAndKeepsItsSlices) {
  Scope scope("main", "w1");
  scope.Follow({{"tasks", true, {}}}, Paused({"worker:w2"}));
  EXPECT_FALSE(scope.Paused("tasks", 0, "noop"));
  EXPECT_TRUE(scope.Follow({{"tasks", true, {}}}, Paused({"worker:w1"})));
  EXPECT_TRUE(scope.Paused("tasks", 0, "noop"));
  EXPECT_TRUE(scope.Owns("tasks", 0, "noop"));
  scope.Follow({{"tasks", true, {}}}, Paused({}));
  EXPECT_TRUE(scope.FollowShard({"worker:w1"})) << "the shard's word reaches it without a cluster";
  EXPECT_TRUE(scope.Paused("tasks", 0, "noop"));
}

}  // namespace
}  // namespace millrace::engine
