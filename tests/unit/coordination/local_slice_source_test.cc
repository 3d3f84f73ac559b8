#include "coordinator/coordination/local/local_slice_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/coordination/local/file_config_source.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const LocalSliceSource::Tables kTables{{"main", {{"tasks_000", 4}, {"tasks_001", 64}}}};

TEST(LocalSliceSourceTest, OwnsEverySliceWithoutNumbers) {
  auto source = LocalSliceSource::Make(kTables, {});
  ASSERT_TRUE(source);
  const auto slices = source->Slices("main");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_TRUE(slices[0].all);
  EXPECT_EQ(slices[1].table, "tasks_001");
}

TEST(LocalSliceSourceTest, OwnsTheNumbersThatEachTableHas) {
  auto source = LocalSliceSource::Make(kTables, {2, 3, 4, 63});
  ASSERT_TRUE(source);
  const auto slices = source->Slices("main");
  ASSERT_EQ(slices.size(), 2u);
  EXPECT_FALSE(slices[0].all);
  EXPECT_THAT(slices[0].slices, ElementsAre(2, 3));
  EXPECT_THAT(slices[1].slices, ElementsAre(2, 3, 4, 63));
}

TEST(LocalSliceSourceTest, NumbersThatNoTableHasAreRefused) {
  const auto source = LocalSliceSource::Make(kTables, {64, 65});
  ASSERT_FALSE(source);
  EXPECT_THAT(source.error().message, HasSubstr("64-65"));
  EXPECT_THAT(source.error().message, HasSubstr("0 to 63"));
}

TEST(LocalSliceSourceTest, KnowsNothingOfOtherShards) {
  auto source = LocalSliceSource::Make(kTables, {});
  EXPECT_TRUE(source->Slices("other").empty());
}

TEST(FileConfigSourceTest, GivesTheSameConfigurationForItsWholeLife) {
  Config config;
  config.engine.batch = 17;
  FileConfigSource source(config);
  EXPECT_EQ(source.Current()->engine.batch, 17u);
  EXPECT_EQ(source.Current(), source.Current());
}

TEST(LocalSliceSourceTest, TaskTypesLimitEveryTable) {
  auto source = LocalSliceSource::Make({{"main", {{"tasks", 4}}}}, {}, {"b", "a"});
  ASSERT_TRUE(source);
  EXPECT_EQ(source->Slices("main")[0].handlers, (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace millrace::engine
