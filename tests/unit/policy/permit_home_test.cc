#include "framework/policy/permit_home.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(PermitHomeTest, TheFirstByNameIsNamedEverywhereAndInItselfLast) {
  const HomeChoice choice = ChooseHome({{"b", ""}, {"a", ""}, {"c", ""}});
  EXPECT_EQ(choice.home, "");
  EXPECT_EQ(choice.name, "a");
  EXPECT_THAT(choice.unnamed, ElementsAre("b", "c"));
  EXPECT_THAT(ChooseHome({{"b", "a"}, {"a", ""}, {"c", "a"}}).unnamed, ElementsAre("a"));
}

// One that saw b alone has named b there meanwhile.
TEST(PermitHomeTest, WhatAnotherHasNamedFirstHolds) {
  const HomeChoice choice = ChooseHome({{"a", ""}, {"b", "b"}});
  EXPECT_EQ(choice.home, "b");
  EXPECT_EQ(choice.name, "b");
  EXPECT_THAT(choice.unnamed, ElementsAre("a"));
}

TEST(PermitHomeTest, AHomeThatWasFoundStaysUntilSomebodySaysOtherwise) {
  EXPECT_TRUE(MayStayHome("a", {{"a", std::nullopt}, {"b", ""}}));
  EXPECT_TRUE(MayStayHome("a", {{"a", "a"}, {"b", std::nullopt}}));
  EXPECT_FALSE(MayStayHome("a", {{"a", ""}, {"b", "a"}}));
  EXPECT_FALSE(MayStayHome("a", {{"a", std::nullopt}, {"b", "b"}}));
  EXPECT_FALSE(MayStayHome("a", {{"b", "a"}}));
}

TEST(PermitHomeTest, ItIsUsedOnceItSaysSoItself) {
  EXPECT_EQ(ChooseHome({{"a", ""}, {"b", "a"}}).home, "");
  EXPECT_THAT(ChooseHome({{"a", ""}, {"b", "a"}}).unnamed, ElementsAre("a"));
  EXPECT_EQ(ChooseHome({{"a", "a"}, {"b", "a"}}).home, "a");
}

TEST(PermitHomeTest, AnEarlierNameThatComesLaterChangesNothing) {
  const HomeChoice choice = ChooseHome({{"a", ""}, {"main", "main"}});
  EXPECT_EQ(choice.home, "main");
  EXPECT_THAT(choice.unnamed, ElementsAre("a"));
}

TEST(PermitHomeTest, AHomeThatIsGoneIsNotReplaced) {
  const HomeChoice choice = ChooseHome({{"b", "a"}, {"c", ""}});
  EXPECT_EQ(choice.home, "");
  EXPECT_TRUE(choice.unnamed.empty());
  EXPECT_THAT(choice.trouble, HasSubstr("shard a is the home of permits and not among the shards"));
}

TEST(PermitHomeTest, TwoHomesAreNone) {
  const HomeChoice choice = ChooseHome({{"a", "a"}, {"b", "b"}});
  EXPECT_EQ(choice.home, "");
  EXPECT_TRUE(choice.unnamed.empty());
  EXPECT_THAT(choice.trouble, HasSubstr("shard a names a"));
}

TEST(PermitHomeTest, WhoeverNamesTheFirstHomeHasAskedAll) {
  EXPECT_EQ(ChooseHome({{"a", ""}, {"b", std::nullopt}}).name, "");
  EXPECT_THAT(ChooseHome({{"a", ""}, {"b", std::nullopt}}).trouble, HasSubstr("shard b does not answer"));
  EXPECT_THAT(ChooseHome({{"a", ""}, {"b", "a"}, {"c", std::nullopt}}).trouble, HasSubstr("shard c"));
  EXPECT_THAT(ChooseHome({{"a", ""}, {"b", "a"}, {"c", std::nullopt}}).unnamed, testing::IsEmpty());
  EXPECT_EQ(ChooseHome({{"a", "a"}, {"b", std::nullopt}}).home, "a");
  EXPECT_EQ(ChooseHome({{"a", std::nullopt}, {"b", "a"}}).home, "");
  EXPECT_NE(ChooseHome({}).trouble, "");
}

}  // namespace
}  // namespace millrace::engine
