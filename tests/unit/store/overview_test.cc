#include "framework/store/overview.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::seconds;

constexpr WallTime kNow{std::chrono::hours(500'000)};

PeerBeat Peer(const std::string& id, std::optional<std::uint64_t> beat) {
  return {
      .incarnation = {.id = id, .worker = id, .host = "here", .pid = 1, .lease = seconds(10), .slices = ""},
      .beat = beat};
}

TEST(BeatWatchTest, ABeatThatWasNotSeenToMoveSaysNothing) {
  BeatWatch watch;
  const BootTime start{seconds(100)};
  watch.Look(start, std::vector{Peer("a", 7)});
  EXPECT_FALSE(watch.AllMoved());
  EXPECT_FALSE(watch.signs().at("a").moved);
  watch.Look(start + seconds(2), std::vector{Peer("a", 7)});
  EXPECT_EQ(watch.signs().at("a").since, start) << "it stands still since then at least";
}

TEST(BeatWatchTest, ABeatThatMovesIsASignOfLife) {
  BeatWatch watch;
  const BootTime start{seconds(100)};
  watch.Look(start, std::vector{Peer("a", 7), Peer("b", std::nullopt)});
  watch.Look(start + seconds(1), std::vector{Peer("a", 8), Peer("b", std::nullopt)});
  watch.Look(start + seconds(3), std::vector{Peer("a", 8), Peer("b", std::nullopt)});
  EXPECT_TRUE(watch.signs().at("a").moved);
  EXPECT_EQ(watch.signs().at("a").since, start + seconds(1));
  EXPECT_FALSE(watch.signs().at("b").moved);
  EXPECT_FALSE(watch.AllMoved());
}

TEST(BeatWatchTest, WhoIsGoneIsForgotten) {
  BeatWatch watch;
  watch.Look(BootTime{seconds(1)}, std::vector{Peer("a", 7)});
  watch.Look(BootTime{seconds(2)}, std::vector<PeerBeat>{});
  EXPECT_TRUE(watch.signs().empty());
  EXPECT_TRUE(watch.AllMoved());
}

TEST(OverviewTest, ASumIsABoundWhereOnePartIsOne) {
  const WaitingOverview waiting{
      .now = kNow,
      .handlers = {{.table = "one", .handler = "a", .waiting = {3, false}, .oldest_due = kNow - seconds(1)},
                   {.table = "two", .handler = "a", .waiting = {5, true}, .oldest_due = kNow - seconds(9)},
                   {.table = "two", .handler = "b", .held = {1, false}, .next_due = kNow + seconds(5)}}};
  const auto all = ByHandler(waiting);
  EXPECT_EQ(all.at("a").waiting, (Counted{8, true}));
  EXPECT_EQ(all.at("a").oldest_due, kNow - seconds(9));
  EXPECT_EQ(all.at("a").table, "two");
  EXPECT_EQ(all.at("b").held, (Counted{1, false}));
}

TEST(OverviewTest, WhatIsDueHidesWhatWillBe) {
  const WaitingOverview waiting{
      .now = kNow,
      .handlers = {{.table = "one", .handler = "a", .next_due = kNow + seconds(5)},
                   {.table = "two", .handler = "a", .oldest_due = kNow - seconds(9)}}};
  EXPECT_EQ(ByHandler(waiting).at("a").next_due, std::nullopt);
}

}  // namespace
}  // namespace millrace::engine
