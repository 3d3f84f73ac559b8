// A leader amid thousands of workers, and one whose link is bad: on the modelled ensemble, in virtual time.
#include <gmock/gmock.h>

#include "coordinator/leader/leader.h"
#include "tests/support/counted_machine.h"
#include "tests/support/modelled_tree_test.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Micros kSessionTimeout = seconds(10);
constexpr Micros kGather = CalmOptions{}.gather;

class LeaderScaleTest : public ModelledTreeTest {
 protected:
  struct Candidate {
    Candidate(LeaderScaleTest& test, const std::string& id, Micros reply, PageBounds bounds = {})
        : process{.name = id},
          leader({id, id + ".a", {.session_timeout = kSessionTimeout}, bounds},
                 {.facts = [&test] { return test.facts_; },
                  .moved = {},
                  .plans = [this] { ++plans; },
                  .planned = [](const PlanFigures&) {}}),
          counted(leader) {
      for (TreeLink& link : process.tree) link = {.least = reply / 2, .slowest = Micros(1)};
      driver = std::make_unique<TreeDriver>(test.timeline_, test.ensemble_, process, test.journal_,
                                            kSessionTimeout, std::vector<TreeMachine*>{&counted});
    }
    ModelledProcess process;
    int plans = 0;
    Leader leader;
    CountedMachine counted;
    std::unique_ptr<TreeDriver> driver;
  };

  LeaderScaleTest() : ModelledTreeTest(1) {}
  static std::string Name(int worker) { return "w" + std::to_string(10'000 + worker); }
  static std::string Slice(int number) { return "main/tasks/" + std::to_string(number); }

  // Workers that are there, each with `slices` of its own already.
  void Populate(int workers, int slices) {
    Write({{TreeWrite::Kind::Set, "/epoch", ToText(EpochDocument{1, "before"})}});
    facts_.catalog = std::make_shared<const TableCatalog>(
        TableCatalog{{{"main", "tasks", static_cast<std::uint32_t>(workers * slices)}}, {}});
    for (int worker = 0; worker < workers; ++worker) {
      AssignDocument assigned{1, 1, {}};
      for (int i = 0; i < slices; ++i) assigned.slices.push_back(Slice(worker * slices + i));
      Write({{TreeWrite::Kind::Create, "/assign/" + Name(worker), ToText(assigned)}});
      Appear(worker);
    }
  }
  void Appear(int worker) {
    const WorkerDocument document{.host = "h", .pid = 1, .incarnation = Name(worker) + ".a"};
    Write({{TreeWrite::Kind::Create, "/workers/" + Name(worker), ToText(document)}});
  }
  void Vanish(int worker) { Write({{TreeWrite::Kind::Remove, "/workers/" + Name(worker)}}); }
  bool HasSlices(int worker) {
    const auto node = ensemble_.head().nodes().find("/assign/" + Name(worker));
    return node != ensemble_.head().nodes().end() && !ReadAssign(node->second.data)->slices.empty();
  }
  // How long it takes until something is so.
  template <class Condition>
  Micros Until(Micros limit, Condition condition) {
    const BootTime begin = timeline_.Now();
    while (!condition() && timeline_.Now() - begin < limit) Pass(milliseconds(20));
    return timeline_.Now() - begin;
  }

  LeaderFacts facts_;
};

TEST_F(LeaderScaleTest, ThreeThousandWorkersAndFourMillisecondsAReplyArePlannedForWithinSeconds) {
  constexpr int kWorkers = 3000;
  Populate(kWorkers, 2);
  Candidate leader(*this, "leader", milliseconds(4));
  EXPECT_LE(Until(seconds(60), [&] { return leader.leader.Settled(); }), seconds(5));
  EXPECT_LE(leader.counted.reads, 2 * kWorkers + 100);
  EXPECT_LE(leader.counted.watches.size(), kWorkers + 100U);

  Pass(kSessionTimeout);  // before that it judges nobody
  Vanish(7);
  EXPECT_LE(Until(seconds(60), [&] { return !HasSlices(7); }), kGather + seconds(2));
  Pass(seconds(10));
  Appear(7);
  EXPECT_LE(Until(seconds(60), [&] { return HasSlices(7); }), seconds(30));  // the calm and its probation

  // In rest: everything is read again, but a hundred things a second at most.
  const int before = leader.counted.reads;
  Pass(seconds(60));
  EXPECT_LE(leader.counted.reads - before, 60 * 105);
  EXPECT_GE(leader.counted.reads - before, 2 * kWorkers - 200);
  EXPECT_LE(leader.counted.writes, 20);
}

TEST_F(LeaderScaleTest, WhatNoWatchToldIsFoundAmongThreeThousandWorkers) {
  constexpr int kWorkers = 3000;
  Populate(kWorkers, 2);
  Candidate leader(*this, "leader", milliseconds(4));
  Pass(seconds(10));
  Write({{TreeWrite::Kind::Set, "/assign/" + Name(2999), "rubbish"}});
  EXPECT_LE(
      Until(seconds(100),
            [&] { return bool(ReadAssign(ensemble_.head().nodes().at("/assign/" + Name(2999)).data)); }),
      seconds(70));
}

TEST_F(LeaderScaleTest, APlanOfManyMultisIsDecidedOnceAndWhetherNothingIsLeftOnceMore) {
  constexpr int kWorkers = 500;
  Populate(kWorkers, 0);
  facts_.catalog = std::make_shared<const TableCatalog>(TableCatalog{{{"main", "tasks", 10 * kWorkers}}, {}});
  Candidate leader(*this, "leader", milliseconds(4));
  Until(seconds(60), [&] { return leader.leader.Settled(); });
  EXPECT_GE(leader.counted.writes, 5);
  EXPECT_EQ(leader.plans, 2);
  for (int worker = 0; worker < kWorkers; ++worker) ASSERT_TRUE(HasSlices(worker)) << worker;
}

// The node of each worker's first page has one child more then.
TEST_F(LeaderScaleTest, APlanOfFurtherPagesIsDecidedNoMoreOftenThanOneOfFirstPages) {
  constexpr int kWorkers = 200;
  Populate(kWorkers, 100);
  facts_.catalog = std::make_shared<const TableCatalog>(
      TableCatalog{{{"main", "tasks", 100 * kWorkers}, {"main", "orders", 100 * kWorkers}}, {}});
  Candidate leader(*this, "leader", milliseconds(4), {.longest_page = 2'030});
  Until(seconds(60), [&] { return leader.leader.Settled(); });
  EXPECT_GE(leader.counted.writes, 3);
  EXPECT_EQ(leader.plans, 2);
  EXPECT_TRUE(ensemble_.head().nodes().contains("/assign/" + Name(0) + "/1"));
}

TEST_F(LeaderScaleTest, APlanOfManyMultisIsDecidedAnewAsSoonAsItIsNoMoreTrue) {
  constexpr int kWorkers = 500;
  Populate(kWorkers, 0);
  facts_.catalog = std::make_shared<const TableCatalog>(TableCatalog{{{"main", "tasks", 10 * kWorkers}}, {}});
  Candidate leader(*this, "leader", milliseconds(4));
  Until(seconds(60), [&] { return HasSlices(0); });
  const int plans = leader.plans;
  ASSERT_FALSE(HasSlices(kWorkers - 1));
  facts_.catalog = std::make_shared<const TableCatalog>(TableCatalog{{{"main", "tasks", 5 * kWorkers}}, {}});
  Until(seconds(60), [&] { return leader.leader.Settled(); });
  EXPECT_GE(leader.plans, plans + 2);
  std::size_t slices = 0;
  for (int worker = 0; worker < kWorkers; ++worker)
    slices += ReadAssign(ensemble_.head().nodes().at("/assign/" + Name(worker)).data)->slices.size();
  EXPECT_EQ(slices, 5U * kWorkers);
}

// Something changes faster than it can read: it never knows all at one time.
TEST_F(LeaderScaleTest, ALeaderThatComesToNoPlanGivesWayToAnotherCandidate) {
  Populate(20, 2);
  Candidate slow(*this, "slow", milliseconds(4));
  Pass(seconds(2));
  Candidate quick(*this, "quick", milliseconds(4));
  Pass(seconds(30));
  ASSERT_TRUE(slow.leader.Leading());
  for (TreeLink& link : slow.process.tree) link.least = milliseconds(2'500);
  Vanish(3);
  std::function<void()> churn = [&] {
    Write({{TreeWrite::Kind::Set, "/workers/" + Name(7),
            ToText(WorkerDocument{.host = "h", .pid = 1, .incarnation = Name(7) + ".a"})}});
    timeline_.After(seconds(2), churn);
  };
  churn();
  EXPECT_LE(Until(seconds(200), [&] { return quick.leader.Leading().has_value(); }), seconds(60));
  EXPECT_LE(Until(seconds(200), [&] { return !HasSlices(3); }), seconds(5));
  Pass(seconds(20));
  EXPECT_TRUE(quick.leader.Leading());
  EXPECT_FALSE(slow.leader.Leading());
}

// Every eight seconds, for five minutes, the leader is cut off for a moment: less than a session lives, and
// before one has passed since the last time.
TEST_F(LeaderScaleTest, ALinkThatFlapsDelaysThePlacingOfOrphansByTwoSessionTimeOutsAtMost) {
  constexpr int kWorkers = 40;
  Populate(kWorkers, 2);
  Candidate leader(*this, "leader", milliseconds(4));
  Pass(seconds(30));
  ASSERT_TRUE(leader.leader.Settled());
  const std::uint64_t term = leader.leader.Leading()->epoch;
  const BootTime end = timeline_.Now() + seconds(300);
  std::function<void()> flap = [&] {
    for (std::size_t server = 0; server < ModelledEnsemble::kServers; ++server) {
      ensemble_.StopServer(server);
      ensemble_.StartServer(server);
    }
    if (timeline_.Now() < end) timeline_.After(seconds(8), flap);
  };
  flap();
  Micros longest{0};
  for (int worker = 0; timeline_.Now() < end; ++worker) {
    Pass(milliseconds(static_cast<std::int64_t>(timeline_.random().Below(5'000))));
    Vanish(worker);
    longest = std::max(longest, Until(seconds(400), [&] { return !HasSlices(worker); }));
  }
  EXPECT_LE(longest, 2 * kSessionTimeout + kGather);
  EXPECT_GE(longest, kSessionTimeout);  // the flaps were felt
  EXPECT_EQ(leader.leader.Leading()->epoch, term);
}

}  // namespace
}  // namespace millrace::engine
