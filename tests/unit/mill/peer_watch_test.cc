#include "framework/mill/peer_watch.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using std::chrono::seconds;

constexpr BootTime kStart{seconds(1000)};

PeerBeat Peer(const std::string& id, std::optional<std::uint64_t> beat, Micros lease = seconds(10)) {
  PeerBeat peer;
  peer.incarnation.id = id;
  peer.incarnation.lease = lease;
  peer.beat = beat;
  return peer;
}

// Looks every two seconds from `from` to `to`; the ids named dead at the last look.
std::size_t Watch(PeerWatch& watch, int from, int to, const std::vector<PeerBeat>& peers) {
  std::size_t dead = 0;
  for (int second = from; second <= to; second += 2) {
    dead = watch.Observe(kStart + seconds(second), "me", peers).size();
  }
  return dead;
}

TEST(PeerWatchTest, ABeatThatStandsStillForItsLeaseIsDead) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 8, {Peer("a", 5)}), 0u);
  const auto dead = watch.Observe(kStart + seconds(10), "me", std::vector{Peer("a", 5)});
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_EQ(dead[0].beat, 5u);
}

TEST(PeerWatchTest, TheLeaseIsThePeersOwn) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 28, {Peer("a", 5, seconds(30))}), 0u);
  EXPECT_EQ(Watch(watch, 30, 30, {Peer("a", 5, seconds(30))}), 1u);
}

TEST(PeerWatchTest, ABeatThatIsMissingForItsLeaseIsDead) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 8, {Peer("a", 5)}), 0u);
  EXPECT_EQ(Watch(watch, 10, 18, {Peer("a", std::nullopt)}), 0u);
  const auto dead = watch.Observe(kStart + seconds(20), "me", std::vector{Peer("a", std::nullopt)});
  ASSERT_EQ(dead.size(), 1u);
  EXPECT_FALSE(dead[0].beat);
}

TEST(PeerWatchTest, AMovingBeatIsAlive) {
  PeerWatch watch(seconds(4));
  for (int second = 0; second < 100; second += 2) {
    const std::vector peers{Peer("a", static_cast<std::uint64_t>(second / 8))};
    EXPECT_TRUE(watch.Observe(kStart + seconds(second), "me", peers).empty()) << second;
  }
}

TEST(PeerWatchTest, OneselfIsNeverDead) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 100, {Peer("me", 5)}), 0u);
}

TEST(PeerWatchTest, AGapInOnesOwnRenewalsStartsTheWatchAnew) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 8, {Peer("a", 5)}), 0u);
  // An outage of the database, or a pause of this process: nothing was watched meanwhile.
  EXPECT_EQ(Watch(watch, 20, 28, {Peer("a", 5)}), 0u);
  EXPECT_EQ(Watch(watch, 30, 30, {Peer("a", 5)}), 1u);
}

TEST(PeerWatchTest, APeerThatWasGoneForALookIsWatchedFromItsReturn) {
  PeerWatch watch(seconds(4));
  EXPECT_EQ(Watch(watch, 0, 8, {Peer("a", 5)}), 0u);
  EXPECT_EQ(Watch(watch, 10, 10, {}), 0u);
  EXPECT_EQ(Watch(watch, 12, 20, {Peer("a", 5)}), 0u);
  EXPECT_EQ(Watch(watch, 22, 22, {Peer("a", 5)}), 1u);
}

}  // namespace
}  // namespace millrace::engine
