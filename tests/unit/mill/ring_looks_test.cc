#include "framework/mill/ring_looks.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/mill/start_time.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// When the looks are that a single ring asks for, each of this cost, relative to the ring.
std::vector<Micros> LooksAfterOneRing(RingLooks& looks, Micros cost) {
  std::vector<Micros> at;
  looks.Rung(kStart);
  for (BootTime next = looks.Next(); next != BootTime::max(); next = looks.Next()) {
    at.push_back(next - kStart);
    looks.Looked(next, cost);
  }
  return at;
}

TEST(RingLooksTest, NobodyRangSoNobodyLooks) {
  const RingLooks looks;
  EXPECT_EQ(looks.Next(), BootTime::max());
  EXPECT_FALSE(looks.Recent(kStart));
}

TEST(RingLooksTest, ARingIsLookedAfterUntilItsRowCanBeSeen) {
  RingLooks looks;
  looks.Looked(kStart - seconds(1), milliseconds(1));
  EXPECT_EQ(LooksAfterOneRing(looks, milliseconds(1)),
            (std::vector<Micros>{milliseconds(0), milliseconds(1), milliseconds(5), milliseconds(20),
                                 milliseconds(100)}));
  EXPECT_TRUE(looks.Recent(kStart + milliseconds(1999)));
  EXPECT_FALSE(looks.Recent(kStart + seconds(2)));
}

TEST(RingLooksTest, ALookServesForAllThatWasWantedUntilItBegan) {
  RingLooks looks;
  looks.Rung(kStart);
  looks.Looked(kStart + milliseconds(30), milliseconds(1));
  EXPECT_EQ(looks.Next(), kStart + milliseconds(100));
  looks.Looked(kStart + seconds(1), milliseconds(1));
  EXPECT_EQ(looks.Next(), BootTime::max());
}

TEST(RingLooksTest, ALookThatBeganBeforeTheRingDoesNotServeForIt) {
  RingLooks looks;
  looks.Rung(kStart);
  looks.Looked(kStart - milliseconds(1), milliseconds(5));
  EXPECT_EQ(looks.Next(), kStart);
}

// What looks take of ten seconds in which there are rings without end, each look of this cost.
Micros SpentOn(Micros cost, bool busy) {
  RingLooks looks;
  looks.SetBusy(busy);
  Micros spent{0};
  BootTime now = kStart;
  while (now < kStart + seconds(10)) {
    looks.Rung(now);
    if (looks.Next() <= now) {
      looks.Looked(now, cost);
      spent += cost;
      now += cost;
    }
    now += Micros(100);
  }
  return spent;
}

TEST(RingLooksTest, RingsWithoutEndTakeAFifthOfTheTime) {
  for (const Micros cost : {milliseconds(1), milliseconds(10), milliseconds(40)}) {
    EXPECT_LE(SpentOn(cost, false), seconds(2) + milliseconds(60)) << cost.count();
    EXPECT_GE(SpentOn(cost, false), milliseconds(1500)) << cost.count();
  }
}

TEST(RingLooksTest, BesideAFullLaneTheyTakeATenthOfIt) {
  for (const Micros cost : {milliseconds(1), milliseconds(10), milliseconds(40)}) {
    EXPECT_LE(SpentOn(cost, true), seconds(1) + milliseconds(60)) << cost.count();
    EXPECT_GE(SpentOn(cost, true), milliseconds(900)) << cost.count();
  }
}

}  // namespace
}  // namespace millrace::engine
