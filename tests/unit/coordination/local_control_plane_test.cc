#include "coordinator/coordination/local/local_control_plane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::map<std::string, LocalControlPlane::Shard> kShards{
    {"main", {nullptr, {{"tasks_000", 4}, {"tasks_001", 64}}}}};

TEST(LocalControlPlaneTest, OwnsEverySliceWithoutNumbers) {
  auto plane = LocalControlPlane::Make(kShards, {});
  ASSERT_TRUE(plane);
  const auto slices = plane->Slices("main");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_TRUE(slices[0].all);
  EXPECT_EQ(slices[1].table, "tasks_001");
}

TEST(LocalControlPlaneTest, OwnsTheNumbersThatEachTableHas) {
  auto plane = LocalControlPlane::Make(kShards, {}, {2, 3, 4, 63});
  ASSERT_TRUE(plane);
  const auto slices = plane->Slices("main");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_FALSE(slices[0].all);
  EXPECT_THAT(slices[0].slices, ElementsAre(2, 3));
  EXPECT_THAT(slices[1].slices, ElementsAre(2, 3, 4, 63));
}

TEST(LocalControlPlaneTest, NumbersThatNoTableHasAreRefused) {
  const auto plane = LocalControlPlane::Make(kShards, {}, {64, 65});
  ASSERT_FALSE(plane);
  EXPECT_THAT(plane.error().message, HasSubstr("64-65"));
  EXPECT_THAT(plane.error().message, HasSubstr("0 to 63"));
}

TEST(LocalControlPlaneTest, KnowsNothingOfOtherShards) {
  auto plane = LocalControlPlane::Make(kShards, {});
  EXPECT_TRUE(plane->Slices("other").empty());
}

TEST(LocalControlPlaneTest, GivesTheSameConfigurationForItsWholeLife) {
  Config config;
  config.engine.batch = 17;
  auto plane = LocalControlPlane::Make(kShards, config);
  ASSERT_TRUE(plane);
  EXPECT_EQ(plane->CurrentConfig()->engine.batch, 17u);
  EXPECT_EQ(plane->CurrentConfig(), plane->CurrentConfig());
  EXPECT_TRUE(plane->Paused()->Names().empty());
}

TEST(LocalControlPlaneTest, TaskTypesLimitEveryTable) {
  auto plane = LocalControlPlane::Make({{"main", {nullptr, {{"tasks", 4}}}}}, {}, {}, {"b", "a"});
  ASSERT_TRUE(plane);
  EXPECT_EQ(plane->Slices("main")[0].handlers, (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace millrace::engine
