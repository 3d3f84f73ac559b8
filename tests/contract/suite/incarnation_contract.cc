#include <algorithm>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {
namespace {

using To = Settlement::To;

std::uint64_t BeatOf(IncarnationStore& store, const std::string& id) {
  auto peers = store.Peers();
  EXPECT_TRUE(peers) << peers.error().message;
  for (const PeerBeat& peer : *peers) {
    if (peer.incarnation.id == id && peer.beat) return *peer.beat;
  }
  ADD_FAILURE() << id << " has no beat";
  return 0;
}

TEST_P(StoreContract, PeersShowWhatWasRegistered) {
  const Incarnation second{.id = "x.2",
                           .worker = "x",
                           .host = "there",
                           .pid = 99,
                           .lease = Micros(1'500'000),
                           .slices = "0-31,40"};
  ASSERT_TRUE(incarnations().Register(second));
  auto peers = incarnations().Peers();
  ASSERT_TRUE(peers);
  ASSERT_EQ(peers->size(), 2U);
  const auto found = std::find_if(peers->begin(), peers->end(),
                                  [](const PeerBeat& peer) { return peer.incarnation.id == "x.2"; });
  ASSERT_NE(found, peers->end());
  EXPECT_EQ(found->incarnation.worker, "x");
  EXPECT_EQ(found->incarnation.host, "there");
  EXPECT_EQ(found->incarnation.pid, 99);
  EXPECT_EQ(found->incarnation.lease, Micros(1'500'000));
  EXPECT_EQ(found->incarnation.slices, "0-31,40");
  EXPECT_EQ(found->beat, 0U) << "it counts renewals";
}

TEST_P(StoreContract, AnIdIsRegisteredOnce) {
  const Status again = incarnations().Register({.id = "w.1", .worker = "w"});
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, ErrorCode::Conflict);
}

TEST_P(StoreContract, RenewMovesTheBeat) {
  const auto before = BeatOf(incarnations(), "w.1");
  auto renewed = incarnations().Renew("w.1");
  ASSERT_TRUE(renewed);
  EXPECT_TRUE(*renewed);
  EXPECT_GT(BeatOf(incarnations(), "w.1"), before);
}

TEST_P(StoreContract, AMovedBeatCannotBeMarkedDead) {
  const auto seen = BeatOf(incarnations(), "w.1");
  ASSERT_TRUE(incarnations().Renew("w.1"));
  auto marked = incarnations().MarkDead("w.1", seen);
  ASSERT_TRUE(marked);
  EXPECT_FALSE(*marked);
  EXPECT_EQ(Claim(AddDue(1)).size(), 1U) << "it lives on";
}

TEST_P(StoreContract, ABeatThatStoodStillIsMarkedDeadOnce) {
  const auto seen = BeatOf(incarnations(), "w.1");
  auto marked = incarnations().MarkDead("w.1", seen);
  ASSERT_TRUE(marked);
  EXPECT_TRUE(*marked);
  auto again = incarnations().MarkDead("w.1", seen);
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
  auto renewed = incarnations().Renew("w.1");
  ASSERT_TRUE(renewed);
  EXPECT_FALSE(*renewed);
  auto peers = incarnations().Peers();
  ASSERT_TRUE(peers);
  EXPECT_TRUE(peers->empty());
}

TEST_P(StoreContract, ALifeWhoseBeatSomebodyDeletedIsMarkedDeadOnce) {
  const auto id = AddDue(1)[0];
  ClaimOne(id);
  ASSERT_TRUE(fixture().DeleteBeat("w.1"));
  auto peers = incarnations().Peers();
  ASSERT_TRUE(peers);
  ASSERT_EQ(peers->size(), 1U);
  EXPECT_EQ(peers->front().incarnation.id, "w.1");
  EXPECT_FALSE(peers->front().beat);
  auto marked = incarnations().MarkDead("w.1", 1);
  ASSERT_TRUE(marked);
  EXPECT_FALSE(*marked) << "that is not what it shows";
  marked = incarnations().MarkDead("w.1", std::nullopt);
  ASSERT_TRUE(marked) << marked.error().message;
  EXPECT_TRUE(*marked);
  marked = incarnations().MarkDead("w.1", std::nullopt);
  ASSERT_TRUE(marked);
  EXPECT_FALSE(*marked);
  EXPECT_TRUE(incarnations().Peers()->empty());
  auto rescued = tasks().Rescue({.table = "tasks", .claimed_by = "w.1", .attempt = 1, .ids = {id}});
  ASSERT_TRUE(rescued);
  EXPECT_EQ(*rescued, std::vector{id});
}

TEST_P(StoreContract, ALifeWithABeatIsNotMarkedDeadAsOneWithout) {
  const auto seen = BeatOf(incarnations(), "w.1");
  auto marked = incarnations().MarkDead("w.1", std::nullopt);
  ASSERT_TRUE(marked) << marked.error().message;
  EXPECT_FALSE(*marked);
  EXPECT_EQ(BeatOf(incarnations(), "w.1"), seen);
  EXPECT_EQ(Claim(AddDue(1)).size(), 1U) << "it lives on";
}

TEST_P(StoreContract, RetireEndsAnIncarnationWhateverItsBeat) {
  auto retired = incarnations().Retire("w.1");
  ASSERT_TRUE(retired);
  EXPECT_TRUE(*retired);
  auto again = incarnations().Retire("w.1");
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
  auto unknown = incarnations().Retire("nobody");
  ASSERT_TRUE(unknown);
  EXPECT_FALSE(*unknown);
  auto renewed = incarnations().Renew("w.1");
  ASSERT_TRUE(renewed);
  EXPECT_FALSE(*renewed);
}

TEST_P(StoreContract, ChargingACrashTwiceChangesNothing) {
  const auto id = AddDue(1)[0];
  ClaimOne(id);
  const Crash crash{{"tasks", id}, 1};
  auto charged = incarnations().ChargeCrashes("w.1", std::span(&crash, 1));
  ASSERT_TRUE(charged) << charged.error().message;
  EXPECT_EQ(*charged, 1U);
  charged = incarnations().ChargeCrashes("w.1", std::span(&crash, 1));
  ASSERT_TRUE(charged);
  EXPECT_EQ(*charged, 0U);
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.crashes, 1U);
  ASSERT_EQ(record.attempts.size(), 1U);
  EXPECT_EQ(record.attempts[0].kind, "crashed");
}

TEST_P(StoreContract, ACrashIsChargedAlsoAfterTheRescue) {
  const auto id = AddDue(1)[0];
  ClaimOne(id);
  ASSERT_TRUE(incarnations().Retire("w.1"));
  ASSERT_TRUE(tasks().Rescue({.table = "tasks", .claimed_by = "w.1", .attempt = 1, .ids = {id}}));
  const Crash crash{{"tasks", id}, 1};
  auto charged = incarnations().ChargeCrashes("w.1", std::span(&crash, 1));
  ASSERT_TRUE(charged);
  EXPECT_EQ(*charged, 1U);
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.crashes, 1U);
  ASSERT_EQ(record.attempts.size(), 1U);
}

TEST_P(StoreContract, ARescueSaysWhoseTaskItWas) {
  const auto id = AddDue(1)[0];
  ClaimOne(id);
  ASSERT_TRUE(incarnations().Retire("w.1"));
  ASSERT_TRUE(tasks().Rescue({.table = "tasks", .claimed_by = "w.1", .attempt = 1, .ids = {id}}));
  const TaskRecord record = Get(id);
  ASSERT_EQ(record.attempts.size(), 1U);
  EXPECT_EQ(record.attempts[0].kind, "rescued");
  EXPECT_EQ(record.attempts[0].error_class, "lost_worker");
  EXPECT_EQ(record.attempts[0].message, "the worker w.1 is dead; the task waits again");
}

// One transaction of few statements: a process that died had up to a thousand handlers under way.
TEST_P(StoreContract, AThousandCrashesAreChargedAtOnce) {
  std::vector<Crash> crashes;
  for (const std::size_t count : {std::size_t{999}, std::size_t{2}}) {
    const std::vector<NewTask> batch(count, NewTask{.handler = "a"});
    auto added = operations().Submit("tasks", batch);
    ASSERT_TRUE(added) << added.error().message;
    for (const Task& task : Claim(added->ids)) crashes.push_back({task.key, 1});
  }
  ASSERT_EQ(crashes.size(), 1001U);
  // One of them was rescued before the recorder was read.
  const std::uint64_t rescued = crashes[500].key.id;
  ASSERT_TRUE(incarnations().Retire("w.1"));
  ASSERT_TRUE(tasks().Rescue({.table = "tasks", .claimed_by = "w.1", .attempt = 1, .ids = {rescued}}));
  auto charged = incarnations().ChargeCrashes("w.1", crashes);
  ASSERT_TRUE(charged) << charged.error().message;
  EXPECT_EQ(*charged, 1001U);
  charged = incarnations().ChargeCrashes("w.1", crashes);
  ASSERT_TRUE(charged);
  EXPECT_EQ(*charged, 0U);
  EXPECT_EQ(Get(crashes[0].key.id).task.crashes, 1U);
  EXPECT_EQ(Get(crashes[1000].key.id).attempts.size(), 1U);
  EXPECT_EQ(Get(rescued).attempts[0].kind, "crashed");
}

TEST_P(StoreContract, AnAttemptThatEndedIsNotCharged) {
  const auto ids = AddDue(2);
  const auto claimed = Claim(ids);
  ASSERT_EQ(claimed.size(), 2U);
  Settlement retry = End(claimed[0], To::Waiting, "no");
  retry.failed_attempt = true;
  Settle({retry, End(claimed[1], To::Succeeded)});
  const std::vector<Crash> crashes{{{"tasks", ids[0]}, 1}, {{"tasks", ids[1]}, 1}};
  auto charged = incarnations().ChargeCrashes("w.1", crashes);
  ASSERT_TRUE(charged) << charged.error().message;
  EXPECT_EQ(*charged, 0U);
  EXPECT_EQ(Get(ids[0]).task.crashes, 0U);
}

// The row runs under it again, and nothing notes how the former attempt ended.
TEST_P(StoreContract, OfTwoAttemptsOfOneLifeThatWhichRunsIsCharged) {
  const auto id = AddDue(1)[0];
  Settle({End(ClaimOne(id), To::Waiting)});
  ClaimOne(id, 1);
  const std::vector<Crash> crashes{{{"tasks", id}, 1}, {{"tasks", id}, 2}};
  const auto charged = incarnations().ChargeCrashes("w.1", crashes);
  ASSERT_TRUE(charged) << charged.error().message;
  EXPECT_EQ(*charged, 1U);
  const TaskRecord record = Get(id);
  EXPECT_EQ(record.task.crashes, 1U);
  ASSERT_EQ(record.attempts.size(), 1U);
  EXPECT_EQ(record.attempts[0].attempt, 2U);
}

}  // namespace
}  // namespace millrace::engine
