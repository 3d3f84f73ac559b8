#include "framework/store/due_scope.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

TableSlices Part(std::vector<std::uint32_t> slices, std::optional<std::vector<std::string>> handlers) {
  return {.table = "t", .all = false, .slices = std::move(slices), .handlers = std::move(handlers)};
}

bool Covers(const DueScope& scope, std::uint32_t slice, const std::string& handler) {
  return scope.Covers({.table = "t", .slice = slice, .handler = handler});
}

TEST(DueScopeTest, ATableIsAskedOnceHoweverOftenItIsNamed) {
  const std::vector<TableSlices> asked{Part({1, 2}, {{"a"}}), Part({2, 5}, {{"b"}}), {.table = "other"}};
  const auto scopes = ScopesOf(asked);
  ASSERT_EQ(scopes.size(), 2U);
  EXPECT_TRUE(scopes[0].whole.all);
  EXPECT_EQ(scopes[1].whole.slices, (std::vector<std::uint32_t>{1, 2, 5}));
  EXPECT_EQ(scopes[1].whole.handlers, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(Covers(scopes[1], 1, "a"));
  EXPECT_FALSE(Covers(scopes[1], 1, "b"));
  EXPECT_TRUE(Covers(scopes[1], 2, "b"));
  EXPECT_FALSE(Covers(scopes[1], 5, "a"));
}

TEST(DueScopeTest, APartForEveryHandlerWidensTheUnion) {
  for (const bool first : {true, false}) {
    std::vector<TableSlices> asked{Part({1}, {{"a"}}), Part({2}, {{"b"}})};
    asked.insert(first ? asked.begin() : asked.end(), Part({3}, std::nullopt));
    const auto scopes = ScopesOf(asked);
    ASSERT_EQ(scopes.size(), 1U);
    EXPECT_FALSE(scopes[0].whole.handlers);
    EXPECT_TRUE(Covers(scopes[0], 3, "z"));
    EXPECT_FALSE(Covers(scopes[0], 2, "z"));
  }
}

TEST(DueScopeTest, WhatAsksForNothingIsLeftOut) {
  const std::vector<TableSlices> asked{Part({}, std::nullopt), Part({1}, {{}})};
  EXPECT_TRUE(ScopesOf(asked).empty());
}

TEST(DueScopeTest, NeighboursAreOneRange) {
  const std::vector<TableSlices> asked{Part({0, 1, 2, 7, 9, 10}, std::nullopt)};
  using Ranges = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  EXPECT_EQ(ScopesOf(asked)[0].whole.Ranges(), (Ranges{{0, 2}, {7, 7}, {9, 10}}));
}

}  // namespace
}  // namespace millrace::engine
