// Tasks that somebody has rung for by their ids: they come with the map, and start before a page is read. A
// worker's mill, on a real store, in a time that the test moves.
#include <gmock/gmock.h>

#include "round_worker.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class RungTasksTest : public ::testing::Test {
 protected:
  RungTasksTest() {
    worker_.scan.brings = true;
    worker_.mill().SetAttended(true);
    Go(seconds(1));
  }
  // All of one group, due as long ago.
  std::vector<std::uint64_t> Submit(std::size_t count, Micros ago = Micros(0), std::uint32_t slice = 1,
                                    const std::string& type = "noop") {
    const NewTask task{.handler = type, .run_at = clock_.WallNow() - ago, .slice = slice};
    auto ids = store_.OpenOperations()->Submit("tasks", std::vector<NewTask>(count, task));
    EXPECT_TRUE(ids);
    worker_.scan.at_page = [this] { before_page_ = before_page_.value_or(Claimed()); };
    return ids->ids;
  }
  void Ring(std::vector<std::uint64_t> ids) {
    worker_.mill().Rung({kDefaultTable, {1}, std::move(ids)});
    worker_.Work();
  }
  void Go(Micros span) {
    for (const BootTime end = clock_.Now() + span; clock_.Now() < end; clock_.Advance(milliseconds(10)))
      worker_.Work();
  }
  std::vector<std::uint64_t> Claimed() const {
    std::vector<std::uint64_t> ids;
    for (const ClaimSeen& claim : worker_.scan.seen) {
      for (const Task& task : claim.tasks) ids.push_back(task.key.id);
    }
    return ids;
  }
  // What was claimed when the first page was read.
  std::vector<std::uint64_t> BeforeAPage() const { return before_page_.value_or(Claimed()); }

  ManualClock clock_;
  ScratchStore store_{clock_};
  RoundWorker worker_{clock_, store_, "w", {}};
  std::optional<std::vector<std::uint64_t>> before_page_;
};

TEST_F(RungTasksTest, AreClaimedBeforeAPageIsRead) {
  const auto ids = Submit(1);
  Ring(ids);
  EXPECT_EQ(BeforeAPage(), ids);
  EXPECT_EQ(Claimed(), ids) << "once";
}

TEST_F(RungTasksTest, APageFollowsThatFindsTheOthers) {
  const auto ids = Submit(30);
  Ring({ids[3], ids[7]});
  EXPECT_THAT(BeforeAPage(), ElementsAre(ids[3], ids[7]));
  EXPECT_EQ(Claimed().size(), 30U) << "in the same look";
}

TEST_F(RungTasksTest, NobodyWhoWaitsIsPassedOver) {
  struct {
    Micros ago;
    std::uint32_t slice;
    std::string type;
  } const cases[] = {{seconds(10), 1, "noop"}, {Micros(0), 2, "noop"}, {Micros(0), 1, "report"}};
  for (const auto& [ago, slice, type] : cases) {
    before_page_.reset();
    const std::size_t claimed = Claimed().size();
    Submit(1, ago, slice, type);
    Ring(Submit(1));
    EXPECT_EQ(BeforeAPage().size(), claimed) << slice << type;
    EXPECT_EQ(Claimed().size(), claimed + 2);
    Go(seconds(1));
  }
}

TEST_F(RungTasksTest, SeveralSlicesStartAtOnce) {
  const auto one = Submit(1, Micros(0), 1);
  const auto other = Submit(1, Micros(0), 2);
  Ring({one[0], other[0]});
  EXPECT_THAT(BeforeAPage(), ElementsAre(one[0], other[0]));
}

TEST_F(RungTasksTest, RoundsAreLeftToTheirPages) {
  worker_.SetScans({{"report", {.every = std::chrono::minutes(1)}}});
  Go(seconds(1));
  const auto ids = Submit(1);
  Ring(ids);
  EXPECT_THAT(BeforeAPage(), IsEmpty());
  EXPECT_EQ(Claimed(), ids);
}

TEST_F(RungTasksTest, ALaneHasNoMoreOfThemThanItTakes) {
  worker_.runner.most = 2;
  worker_.runner.takes = seconds(1);
  const auto ids = Submit(5);
  Ring(ids);
  EXPECT_EQ(BeforeAPage().size(), 2U);
  Go(seconds(5));
  EXPECT_THAT(Claimed(), ::testing::UnorderedElementsAreArray(ids));
}

TEST_F(RungTasksTest, BandsAreLeftToTheirPages) {
  ScanOrder order;
  order.bands["report"] = {{.every = std::chrono::minutes(1)}};
  worker_.Configure({}, order);
  Go(seconds(1));
  const auto ids = Submit(1);
  Ring(ids);
  EXPECT_THAT(BeforeAPage(), IsEmpty());
  EXPECT_EQ(Claimed(), ids);
}

// A part knows how many rows there are: beside an old snapshot a page that asks for more takes long.
TEST_F(RungTasksTest, PartsOfAMapAreLeftToTheirPages) {
  worker_.scan.maps_take = milliseconds(500);
  worker_.scan.parts_take = milliseconds(1);
  for (int i = 0; i < 3000 && worker_.scan.asked.parts == 0; ++i) Go(milliseconds(10));
  ASSERT_GT(worker_.scan.asked.parts, 0);
  const auto ids = Submit(3);
  worker_.scan.asked.most = 0;
  Ring(ids);
  Go(milliseconds(250));
  EXPECT_EQ(Claimed(), ids);
  EXPECT_EQ(worker_.scan.asked.most, 3);
}

TEST_F(RungTasksTest, WhatIsPausedIsNotClaimedForARing) {
  worker_.Pause({"handler:noop"});
  const auto ids = Submit(1);
  Ring(ids);
  Go(seconds(5));
  EXPECT_THAT(Claimed(), IsEmpty());
  worker_.Pause({});
  Go(seconds(5));
  EXPECT_EQ(Claimed(), ids);
}

TEST_F(RungTasksTest, AClaimThatIsLostLeavesThemToAPage) {
  worker_.scan.loses_a_claim = true;
  const auto ids = Submit(1);
  Ring(ids);
  EXPECT_THAT(Claimed(), IsEmpty());
  Go(seconds(5));
  EXPECT_EQ(Claimed(), ids);
}

}  // namespace
}  // namespace millrace::engine
