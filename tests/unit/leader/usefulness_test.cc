#include "coordinator/leader/usefulness.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::IsEmpty;
using Shards = std::vector<std::string>;

class UsefulnessTest : public testing::Test {
 protected:
  UsefulnessTest() { leader_.Begin(At(0)); }
  static BootTime At(int second) { return BootTime(seconds(1000 + second)); }
  // As a leader that plans.
  std::string WhyNot(int second) {
    leader_.Useful();
    return leader_.WhyNot(others_, At(second));
  }
  // As one that tries to; when it gives way first, 0: not by then.
  int GivesWay(int from, int to) {
    for (int second = from; second <= to; ++second) {
      if (!leader_.WhyNot(others_, At(second)).empty()) return second;
    }
    return 0;
  }

  Usefulness leader_{seconds(10)};
  std::vector<CandidateDocument> others_{{"w2", "w2.a", Shards{}}};
};

TEST_F(UsefulnessTest, WhoReadsAllStays) {
  leader_.Reads(Shards{}, At(0));
  EXPECT_THAT(WhyNot(1000), IsEmpty());
}

TEST_F(UsefulnessTest, WhoCanNotReadWhatAnotherCanGivesWayAfterAWhile) {
  leader_.Reads(Shards{"a", "b"}, At(0));
  EXPECT_THAT(WhyNot(29), IsEmpty());
  EXPECT_THAT(WhyNot(30), HasSubstr("can't read a, b, and w2"));
  leader_.Reads(Shards{}, At(31));
  leader_.Reads(Shards{"a"}, At(32));
  EXPECT_THAT(WhyNot(40), IsEmpty());  // another trouble
}

TEST_F(UsefulnessTest, WhereNobodyDoesBetterItStays) {
  leader_.Reads(Shards{"a"}, At(0));
  others_ = {{"w2", "w2.a", Shards{"b"}}, {"w3", "w3.a", std::nullopt}};
  EXPECT_THAT(WhyNot(1000), IsEmpty());
  others_.clear();
  EXPECT_THAT(WhyNot(1000), IsEmpty());
}

TEST_F(UsefulnessTest, WhoKnowsOfNoShardGivesWayToOneWhoDoes) {
  leader_.Reads(std::nullopt, At(0));
  others_ = {{"w2", "w2.a", std::nullopt}};
  EXPECT_THAT(WhyNot(100), IsEmpty());
  others_ = {{"w2", "w2.a", Shards{"b"}}};
  EXPECT_THAT(WhyNot(100), HasSubstr("w2"));
}

TEST_F(UsefulnessTest, WhoComesToNoPlanGivesWayEachTimeMorePatiently) {
  leader_.Reads(Shards{}, At(0));
  EXPECT_EQ(GivesWay(0, 100), 30);
  leader_.GaveWay();
  leader_.Begin(At(100));
  EXPECT_EQ(GivesWay(100, 200), 160);
  leader_.Useful();
  EXPECT_EQ(GivesWay(160, 300), 190);
  others_.clear();
  EXPECT_EQ(GivesWay(191, 300), 0);
}

TEST_F(UsefulnessTest, NeitherAnOutageNorAPauseOfTheProcessCounts) {
  leader_.Reads(Shards{}, At(0));
  EXPECT_EQ(GivesWay(0, 10), 0);
  leader_.Disconnected();
  EXPECT_EQ(GivesWay(11, 100), 0);
  leader_.Connected();
  EXPECT_EQ(GivesWay(101, 110), 0);
  EXPECT_EQ(GivesWay(1000, 1100), 1000);  // a time-out of the pause at most
}

}  // namespace
}  // namespace millrace::engine
