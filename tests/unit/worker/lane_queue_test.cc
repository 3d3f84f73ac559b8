#include "framework/worker/lane_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "no_host.h"

namespace millrace::engine {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(LanePaceTest, BeforeTheFirstTaskItQueuesTwoPerThread) { EXPECT_EQ(LanePace(8, 0).Capacity(), 16u); }

TEST(LanePaceTest, SlowTasksAreNotHoarded) {
  LanePace pace(8, 0);
  pace.Ran(1, seconds(10));
  EXPECT_EQ(pace.Capacity(), 8u);
}

TEST(LanePaceTest, HalfASecondOfWorkIsQueued) {
  LanePace pace(8, 0);
  pace.Ran(1, milliseconds(50));
  EXPECT_EQ(pace.Capacity(), 80u);
}

TEST(LanePaceTest, FastTasksStopAtTheBound) {
  LanePace pace(2, 0);
  pace.Ran(999, microseconds(100));
  EXPECT_EQ(pace.Capacity(), LanePace::kMost);
}

TEST(LanePaceTest, AConfiguredNumberHoldsWhateverThePace) {
  LanePace pace(8, 200);
  pace.Ran(1, seconds(10));
  EXPECT_EQ(pace.Capacity(), 200u);
}

TEST(LanePaceTest, ATaskWaitsForThoseBeforeItAndForAThread) {
  LanePace pace(8, 0);
  EXPECT_GE(pace.WaitFor(0), seconds(60));
  pace.Ran(1, seconds(1));
  EXPECT_EQ(pace.WaitFor(0), milliseconds(125));
  EXPECT_EQ(pace.WaitFor(15), seconds(2));
}

TEST(LanePaceTest, ANewNumberOfThreadsKeepsThePace) {
  LanePace pace(8, 0);
  pace.Ran(1, milliseconds(50));
  pace.Resize(2, 0);
  EXPECT_EQ(pace.Capacity(), 20u);
}

TEST(LanePaceTest, ItFollowsAChangeOfPace) {
  LanePace pace(1, 0);
  pace.Ran(1, milliseconds(1));
  for (int i = 0; i < 100; ++i) pace.Ran(1, milliseconds(100));
  EXPECT_LE(pace.Capacity(), 6u);
}

TEST(LanePaceTest, ManyCallsThatAreToldTogetherWeighAsMuchAsOneByOne) {
  LanePace together(1, 0);
  LanePace one_by_one(1, 0);
  together.Ran(1, milliseconds(1));
  one_by_one.Ran(1, milliseconds(1));
  together.Ran(30, milliseconds(300), 30);
  for (int i = 0; i < 30; ++i) one_by_one.Ran(1, milliseconds(10));
  EXPECT_EQ(together.Each(), one_by_one.Each());
}

}  // namespace

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// What a test says of a task.
struct Given {
  std::uint32_t priority = 5;
  std::uint32_t failures = 0;
  milliseconds due{0};
  TableName table = "tasks";
  std::size_t params = 0;  // bytes
};

class LaneQueueTest : public ::testing::Test {
 protected:
  LaneQueueTest() {
    SetUp(type_, "t", 10);
    SetUp(other_, "u", 10);
  }
  static void SetUp(LaneType& type, const std::string& name, std::size_t bound, std::size_t threads = 8) {
    type.name = name;
    type.pace = LanePace(threads, bound);
    type.most = threads;
  }
  AttemptPtr Make(const std::shared_ptr<NoHost>& host, const Given& given = {}) {
    Task task;
    task.key = {given.table, ++last_id_};
    task.priority = given.priority;
    task.failures = given.failures;
    task.run_at = WallTime(std::chrono::hours(1000) + given.due);
    task.params = std::string(given.params, 'x');
    return std::make_shared<Attempt>(host, "s", task, nullptr, false);
  }
  void Push(LaneType& type, const std::shared_ptr<NoHost>& host, int count, const Given& given = {}) {
    std::vector<AttemptPtr> attempts;
    for (int i = 0; i < count; ++i) attempts.push_back(Make(host, given));
    EXPECT_THAT(queue_.Push(type, std::move(attempts), now_, aging_), IsEmpty());
  }
  void Push(const std::shared_ptr<NoHost>& host, int count) { Push(type_, host, count); }
  std::optional<Taken> Draw(std::size_t most = 1) {
    auto drawn = queue_.Next([this](const AttemptHost&) { return aging_; },
                             [](const LaneType& type) { return type.threads < type.most; });
    if (drawn) taken_ = queue_.Take(*drawn, most, aging_);
    return drawn;
  }
  std::vector<std::uint64_t> Take(std::size_t most) {
    std::vector<std::uint64_t> ids;
    if (!Draw(most)) return ids;
    for (const AttemptPtr& attempt : taken_) ids.push_back(attempt->task.key.id);
    return ids;
  }
  // One after another, each by a thread that comes back at once.
  std::vector<std::uint64_t> TakeInTurns(int count) {
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < count; ++i) {
      const auto drawn = Draw();
      if (!drawn) break;
      ids.push_back(taken_.front()->task.key.id);
      queue_.Leave(*drawn);
    }
    return ids;
  }
  std::size_t Room(const NoHost& host, std::uint32_t urgency = kLeastUrgent) {
    return queue_.Room(type_, host, urgency, now_, aging_).tasks;
  }

  const std::shared_ptr<NoHost> a_ = std::make_shared<NoHost>();
  const std::shared_ptr<NoHost> b_ = std::make_shared<NoHost>();
  LaneType type_;
  LaneType other_;
  LaneQueue queue_;
  BootTime now_{seconds(100)};
  Aging aging_{Micros(0), WallTime(std::chrono::hours(1000))};
  std::vector<AttemptPtr> taken_;
  std::uint64_t last_id_ = 0;
};

TEST_F(LaneQueueTest, OneShardAloneHasTheWholeQueueAndAllThreads) {
  EXPECT_EQ(Room(*a_), 10u);
  Push(a_, 6);
  EXPECT_EQ(Room(*a_), 0u);
  EXPECT_THAT(Take(2), ElementsAre(1, 2));
  EXPECT_THAT(Take(2), ElementsAre(3, 4));
  EXPECT_EQ(Room(*a_), 8u);
}

TEST_F(LaneQueueTest, AFullShardTakesNoRoomFromAnother) {
  Push(a_, 100);
  EXPECT_EQ(Room(*b_), 5u);
  Push(b_, 5);
  EXPECT_EQ(Room(*a_), 0u);
}

TEST_F(LaneQueueTest, ShardsTakeTurns) {
  Push(a_, 4);
  Push(b_, 4);
  const auto first = Take(1);
  const auto second = Take(1);
  EXPECT_NE(first[0] <= 4, second[0] <= 4);
}

TEST_F(LaneQueueTest, AShardThatHoldsItsThreadsLeavesSomeToOthersThatWait) {
  Push(a_, 20);
  Push(b_, 20);
  std::size_t held_by_a = 0;
  // Each thread that works for b comes back at once; those that work for a never do.
  for (int i = 0; i < 20; ++i) {
    const auto drawn = Draw();
    ASSERT_TRUE(drawn);
    if (drawn->host == a_) {
      ++held_by_a;
    } else {
      queue_.Leave(*drawn);
    }
  }
  EXPECT_EQ(held_by_a, 6u);
}

TEST_F(LaneQueueTest, ItTellsOnceThatThereIsRoomAgain) {
  Push(a_, 6);
  EXPECT_FALSE(queue_.RoomAgain(type_, *a_, aging_));
  Draw();
  EXPECT_TRUE(queue_.RoomAgain(type_, *a_, aging_));
  EXPECT_FALSE(queue_.RoomAgain(type_, *a_, aging_));
}

TEST_F(LaneQueueTest, WhatIsUnwantedIsTakenOutAndKnowsHowManyStandBeforeIt) {
  Push(a_, 5);
  std::vector<std::size_t> ahead;
  const auto taken = queue_.TakeIf([&](const Attempt& attempt, const LaneType& type, std::size_t before) {
    EXPECT_EQ(&type, &type_);
    ahead.push_back(before);
    return attempt.task.key.id % 2 == 0;
  });
  EXPECT_THAT(taken, SizeIs(2));
  EXPECT_THAT(ahead, ElementsAre(0, 1, 1, 2, 2));
  EXPECT_EQ(queue_.Size(), 3u);
  EXPECT_THAT(Take(9), ElementsAre(1, 3, 5));
}

TEST_F(LaneQueueTest, AShardOfWhichNothingIsLeftIsForgotten) {
  Push(a_, 1);
  const std::weak_ptr<NoHost> known = a_;
  {
    const auto drawn = Draw();
    queue_.Leave(*drawn);
    taken_.clear();
  }
  EXPECT_EQ(known.use_count(), 1);
  EXPECT_THAT(Take(1), IsEmpty());
}

TEST_F(LaneQueueTest, AnUrgentTaskPassesIdleOnesThatWereQueuedBeforeIt) {
  Push(type_, a_, 5, {.priority = 9});
  Push(type_, a_, 1, {.priority = 0, .due = seconds(5)});
  EXPECT_THAT(Take(3), ElementsAre(6, 1, 2));
}

TEST_F(LaneQueueTest, AFullQueueOfIdleTasksHasRoomForUrgentOnesAlone) {
  Push(type_, a_, 10, {.priority = 9});
  EXPECT_EQ(Room(*a_, Urgency(9, 0)), 0u);
  EXPECT_EQ(Room(*a_, Urgency(0, 0)), 10u);
  EXPECT_LE(Room(*a_, Urgency(5, 0)), 5u) << "some of the reserve is left to what is more urgent";
  EXPECT_GT(Room(*a_, Urgency(5, 0)), 0u);
  Push(type_, a_, 10, {.priority = 0});
  EXPECT_EQ(Room(*a_, Urgency(0, 0)), 0u);
}

TEST_F(LaneQueueTest, ItTellsOfRoomForTheUrgentBesideAFullQueueOfIdleTasks) {
  Push(type_, a_, 10, {.priority = 9});
  Push(type_, a_, 10, {.priority = 0});
  EXPECT_FALSE(queue_.RoomAgain(type_, *a_, aging_));
  Take(6);  // one of the oldest in eight turns
  EXPECT_TRUE(queue_.RoomAgain(type_, *a_, aging_));
  EXPECT_FALSE(queue_.RoomAgain(type_, *a_, aging_));
  Take(10);
  EXPECT_TRUE(queue_.RoomAgain(type_, *a_, aging_)) << "now there is room for all";
}

TEST_F(LaneQueueTest, WhatHasAgedTakesNoneOfTheReserve) {
  aging_ = {seconds(1), WallTime(std::chrono::hours(1000) + seconds(60))};
  Push(type_, a_, 10, {.priority = 9});
  EXPECT_EQ(Room(*a_, Urgency(0, 0)), 0u) << "it is as urgent by now";
  aging_.step = std::chrono::hours(1);
  EXPECT_EQ(Room(*a_, Urgency(0, 0)), 10u);
}

TEST_F(LaneQueueTest, ClaimsStayLargeBesideIdleTasksToo) {
  Push(type_, a_, 10, {.priority = 9});
  Push(type_, a_, 4, {.priority = 5});
  EXPECT_EQ(Room(*a_, Urgency(5, 0)), 0u) << "one is left of five";
  Draw();
  Draw();
  EXPECT_EQ(Room(*a_, Urgency(5, 0)), 3u);
}

TEST_F(LaneQueueTest, BytesBoundTheQueueToo) {
  type_.bytes = 100 * 1024;
  EXPECT_EQ(queue_.Room(type_, *a_, kLeastUrgent, now_, aging_).bytes, 100u * 1024);
  Push(type_, a_, 2, {.params = 20'000});
  const LaneRoom room = queue_.Room(type_, *a_, kLeastUrgent, now_, aging_);
  EXPECT_EQ(room.tasks, 8u);
  EXPECT_LT(room.bytes, 61u * 1024);
  Push(type_, a_, 1, {.params = 20'000});
  EXPECT_EQ(Room(*a_), 0u) << "less than half of it is free";
  EXPECT_EQ(Room(*a_, Urgency(5, 0)), 0u) << "what is as urgent has no reserve";
  EXPECT_GT(Room(*a_, Urgency(0, 0)), 0u);
  Take(2);
  EXPECT_EQ(Room(*a_), 9u);
}

TEST_F(LaneQueueTest, ShardsDivideTheBytesAmongThem) {
  type_.bytes = 100 * 1024;
  Push(a_, 1);
  EXPECT_EQ(queue_.Room(type_, *b_, kLeastUrgent, now_, aging_).bytes, 50u * 1024);
}

TEST_F(LaneQueueTest, WhatThereIsNoRoomForIsClaimedNowAndThenWhereItGoesBack) {
  type_.gives_back = true;
  EXPECT_FALSE(queue_.Room(type_, *a_, Urgency(5, 0), now_, aging_).gives_back);
  Push(a_, 10);
  EXPECT_EQ(Room(*a_, Urgency(5, 0)), 5u);
  EXPECT_TRUE(queue_.Room(type_, *a_, Urgency(5, 0), now_, aging_).gives_back);
  std::vector<AttemptPtr> more;
  for (int i = 0; i < 5; ++i) more.push_back(Make(a_));
  EXPECT_THAT(queue_.Push(type_, std::move(more), now_, aging_), SizeIs(5));
  EXPECT_EQ(queue_.Size(), 10u);
  EXPECT_EQ(Room(*a_, Urgency(5, 0)), 0u);
  now_ += seconds(1);
  EXPECT_EQ(Room(*a_, Urgency(5, 0)), 5u);
}

TEST_F(LaneQueueTest, QueuesTakeTurnsByTheWeightOfWhatIsAtTheirHeads) {
  queue_.Follow({.by = QueuesConfig::By::Table});
  type_.weight = 3;
  Push(type_, a_, 40, {.table = "heavy"});
  Push(other_, a_, 40, {.table = "light"});
  const auto ids = TakeInTurns(16);
  EXPECT_EQ(std::count_if(ids.begin(), ids.end(), [](std::uint64_t id) { return id <= 40; }), 12);
}

TEST_F(LaneQueueTest, AQueueThatWasEmptyHasNoTurnsToCatchUpWith) {
  queue_.Follow({.by = QueuesConfig::By::Table});
  Push(type_, a_, 100, {.table = "old"});
  TakeInTurns(50);
  Push(other_, a_, 20, {.table = "new"});
  const auto ids = TakeInTurns(10);
  EXPECT_LE(std::count_if(ids.begin(), ids.end(), [](std::uint64_t id) { return id > 100; }), 6);
}

TEST_F(LaneQueueTest, DrawnAtRandomEachQueueHasItsPart) {
  queue_.Follow({.by = QueuesConfig::By::Priority, .take = QueuesConfig::Take::Random});
  Push(type_, a_, 200, {.priority = 1});
  Push(type_, a_, 200, {.priority = 2});
  const auto ids = TakeInTurns(200);
  const auto first = std::count_if(ids.begin(), ids.end(), [](std::uint64_t id) { return id <= 200; });
  EXPECT_GT(first, 60);
  EXPECT_LT(first, 140);
  int repeated = 0;
  for (std::size_t i = 1; i < ids.size(); ++i) repeated += (ids[i] <= 200) == (ids[i - 1] <= 200) ? 1 : 0;
  EXPECT_GT(repeated, 60) << "they do not take turns";
}

TEST_F(LaneQueueTest, NoMoreQueuesAreDrawnFromAtOnceThanConfiguredAndAllHaveTheirTurn) {
  queue_.Follow({.by = QueuesConfig::By::Table, .most = 2});
  for (const TableName table : {TableName("a"), TableName("b"), TableName("c")}) {
    Push(type_, a_, 100, {.table = table});
  }
  std::map<std::string, std::vector<Taken>> at_work;
  std::map<std::string, int> drawn;
  for (int round = 0; round < 200; ++round) {
    while (true) {
      const auto next = Draw();
      if (!next) break;
      at_work[next->queue].push_back(*next);
      ++drawn[next->queue];
    }
    ASSERT_LE(at_work.size(), 2u);
    ASSERT_FALSE(at_work.empty());
    auto& some = std::next(at_work.begin(), round % static_cast<int>(at_work.size()))->second;
    queue_.Leave(some.back());
    some.pop_back();
    std::erase_if(at_work, [](const auto& queue) { return queue.second.empty(); });
  }
  EXPECT_THAT(drawn, SizeIs(3));
  for (const auto& [queue, times] : drawn) EXPECT_GT(times, 20) << queue;
}

TEST_F(LaneQueueTest, InOneQueueTheMostUrgentTypeIsFirstAndOneThatMayNotStartIsPassed) {
  queue_.Follow({.by = QueuesConfig::By::One});
  Push(type_, a_, 3, {.priority = 9});
  Push(other_, a_, 3, {.priority = 5});
  EXPECT_THAT(TakeInTurns(2), ElementsAre(4, 5));
  other_.most = 0;
  EXPECT_THAT(TakeInTurns(1), ElementsAre(1));
}

TEST_F(LaneQueueTest, WhatIsQueuedMovesWhereTheyQueueByAnother) {
  Push(type_, a_, 3, {.table = "x"});
  const auto drawn = Draw();
  Push(type_, a_, 2, {.table = "y"});
  queue_.Follow({.by = QueuesConfig::By::Table});
  EXPECT_EQ(queue_.Size(), 4u);
  EXPECT_THAT(queue_.Loads(), SizeIs(3)) << "and the one that a thread works for yet";
  queue_.Leave(*drawn);
  EXPECT_THAT(queue_.Loads(), SizeIs(2));
  EXPECT_THAT(TakeInTurns(9), ::testing::UnorderedElementsAre(2, 3, 4, 5));
  EXPECT_EQ(Room(*a_), 10u);
}

}  // namespace

}  // namespace millrace::engine
