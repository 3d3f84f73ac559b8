#include "coordinator/leader/plan.h"

#include <gmock/gmock.h>

#include <array>
#include <random>

#include "framework/policy/eligibility.h"

namespace millrace::engine {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

// A cluster of which one decision after the other is carried out.
class PlanTest : public testing::Test {
 protected:
  PlanTest() { state_.catalog.tables = {{"main", "tasks", 64}}; }

  void Join(const std::string& id, MemberRole role = MemberRole::Active) {
    state_.workers[id].incarnation = id;
    state_.roles[id] = role;
  }
  void Leave(const std::string& id, MemberRole role = MemberRole::Gone) { state_.roles[id] = role; }
  PlanDecision Decide(bool quiet = true) { return DecidePlan(state_, quiet); }
  PlanDecision CarryOut(bool quiet = true) {
    PlanDecision decision = Decide(quiet);
    state_.assigned.clear();
    for (const auto& [id, slices] : decision.wanted) state_.assigned[id] = {1, 1, slices, decision.groups};
    return decision;
  }
  // Whether the worker may own the slice, asked from its document alone.
  bool Accepts(const WorkerDocument& worker, const std::string& slice, const HandlersByGroup& groups) {
    const SliceName name = ParseSliceName(slice).value();
    const auto group = groups.find(name.group);
    return Eligible(worker.limits, name, group == groups.end() ? std::vector<std::string>() : group->second);
  }
  std::size_t Count(const std::string& id) { return state_.assigned[id].slices.size(); }

  PlanState state_;
};

TEST_F(PlanTest, FirstPlacementsDoNotWaitForCalm) {
  for (const char* id : {"w1", "w2", "w3"}) Join(id);
  EXPECT_THAT(CarryOut(false).moves, SizeIs(64));
  EXPECT_THAT((std::vector{Count("w1"), Count("w2"), Count("w3")}),
              testing::UnorderedElementsAre(21, 21, 22));
  EXPECT_THAT(Decide().moves, IsEmpty());
}

TEST_F(PlanTest, AJoinMovesItsPartOnceItIsQuiet) {
  for (const char* id : {"w1", "w2", "w3"}) Join(id);
  CarryOut();
  Join("w4");
  const PlanDecision waiting = CarryOut(false);
  EXPECT_THAT(waiting.moves, IsEmpty());
  EXPECT_EQ(waiting.waiting, 16u);
  EXPECT_THAT(CarryOut(true).moves, SizeIs(16));
  EXPECT_EQ(Count("w4"), 16u);
}

TEST_F(PlanTest, OrphansArePlacedAtOnceAndNothingElseMoves) {
  for (const char* id : {"w1", "w2", "w3"}) Join(id);
  CarryOut();
  const std::size_t lost = Count("w2");
  Leave("w2");
  state_.workers.erase("w2");
  const PlanDecision decision = CarryOut(false);
  EXPECT_THAT(decision.moves, SizeIs(lost));
  for (const SliceMove& move : decision.moves) EXPECT_EQ(move.from, "w2");
  EXPECT_EQ(Count("w2"), 0u);
}

TEST_F(PlanTest, KeptSlicesStayAndComeBackWithoutAMove) {
  for (const char* id : {"w1", "w2", "w3"}) Join(id);
  CarryOut();
  Leave("w2", MemberRole::Kept);
  EXPECT_THAT(CarryOut().moves, IsEmpty());
  Join("w2");
  EXPECT_THAT(CarryOut().moves, IsEmpty());
}

TEST_F(PlanTest, ADrainedWorkerGivesUpWhatOthersCanTake) {
  Join("w1");
  Join("w2");
  CarryOut();
  Leave("w1", MemberRole::Draining);
  EXPECT_THAT(CarryOut(false).moves, SizeIs(32));
  EXPECT_EQ(Count("w1"), 0u);
  Leave("w2", MemberRole::Draining);
  const PlanDecision nowhere = CarryOut();
  EXPECT_THAT(nowhere.moves, IsEmpty());
  EXPECT_THAT(nowhere.unplaceable, SizeIs(64));
  EXPECT_EQ(Count("w2"), 64u);  // better drained late than not at all
}

TEST_F(PlanTest, AWorkerOnProbationKeepsItsOwnAndGetsNothingThatOthersCanTake) {
  Join("w1");
  Join("w2");
  CarryOut();
  Leave("w2", MemberRole::Probation);
  EXPECT_THAT(CarryOut().moves, IsEmpty());
  Leave("w1");
  state_.workers.erase("w1");
  EXPECT_THAT(CarryOut().moves, SizeIs(32));  // nobody else is there
  EXPECT_EQ(Count("w2"), 64u);
}

TEST_F(PlanTest, AWorkerThatFlapsHasNothingButWhatNobodyElseCanTake) {
  Join("w1");
  Join("w2");
  Join("w3");
  state_.workers["w1"].limits.handlers = {{"a"}};
  state_.workers["w2"].limits.handlers = {{"a", "b"}};
  state_.workers["w3"].limits.handlers = {{"a", "b", "c"}};
  CarryOut();
  Leave("w2", MemberRole::Probation);
  Leave("w3", MemberRole::Flapping);
  CarryOut(false);
  EXPECT_EQ(Count("w1") + Count("w2"), 128u);
  EXPECT_THAT(state_.assigned["w3"].slices, testing::Each(testing::EndsWith("@c")));
  EXPECT_EQ(Count("w3"), 64u);
  EXPECT_THAT(Decide(false).moves, IsEmpty());
}

TEST_F(PlanTest, WorkersThatDifferInTheirHandlersGetSlicesOfGroups) {
  Join("w1");
  Join("w2");
  state_.workers["w1"].limits.handlers = {{"a"}};
  state_.workers["w2"].limits.handlers = {{"b"}};
  const PlanDecision apart = CarryOut();
  EXPECT_EQ(apart.groups, (HandlersByGroup{{"a", {"a"}}, {"b", {"b"}}}));
  EXPECT_EQ(Count("w1"), 64u);
  EXPECT_EQ(Count("w2"), 64u);
  EXPECT_THAT(state_.assigned["w1"].slices, testing::Each(testing::EndsWith("@a")));

  Join("w3");
  state_.workers["w3"].limits.handlers = {{"a", "b"}};
  CarryOut();
  EXPECT_EQ(Count("w1") + Count("w2") + Count("w3"), 128u);
  EXPECT_GE(Count("w3"), 42u);
  Leave("w3");
  state_.workers.erase("w3");
  CarryOut();
  EXPECT_EQ(Count("w1"), 64u);
  EXPECT_EQ(Count("w2"), 64u);
}

TEST_F(PlanTest, WorkersAlikeShareOneGroup) {
  Join("w1");
  Join("w2");
  state_.workers["w1"].limits.handlers = state_.workers["w2"].limits.handlers = {{"a", "b"}};
  const PlanDecision decision = CarryOut();
  EXPECT_THAT(decision.groups, IsEmpty());
  EXPECT_EQ(decision.wanted.at("w1").front().find('@'), std::string::npos);
}

TEST_F(PlanTest, AGroupThatSplitsStaysWithItsOwnerWhereHeMay) {
  Join("w1");
  state_.workers["w1"].limits.handlers = {{"a", "b"}};
  CarryOut();
  Join("w2");
  state_.workers["w2"].limits.handlers = {{"b"}};
  const PlanDecision split = CarryOut(false);
  EXPECT_THAT(split.moves, IsEmpty());  // 64 of each group are w1's, until it is quiet
  EXPECT_EQ(Count("w1"), 128u);
  EXPECT_THAT(CarryOut(true).moves, SizeIs(64));
}

// As a leader sees it that began while the worker was away.
TEST_F(PlanTest, AKeptWorkerThatWasNeverSeenKeepsTheGroupsAsTheyAre) {
  Join("w1");
  Join("w2");
  state_.workers["w1"].limits.handlers = {{"a"}};
  state_.workers["w2"].limits.handlers = {{"a", "b"}};
  const PlanDecision before = CarryOut();
  const std::size_t kept = Count("w1");
  state_.workers.erase("w1");
  Leave("w1", MemberRole::Kept);
  const PlanDecision away = CarryOut();
  EXPECT_THAT(away.moves, IsEmpty());
  EXPECT_EQ(away.groups, before.groups);
  EXPECT_EQ(Count("w1"), kept);
  Join("w1");
  state_.workers["w1"].limits.handlers = {{"a"}};
  EXPECT_THAT(CarryOut().moves, IsEmpty());
}

TEST_F(PlanTest, AKeptWorkerThatTookEveryTypeStillDoes) {
  Join("w1");
  Join("w2");
  state_.workers["w2"].limits.handlers = {{"b"}};
  const PlanDecision before = CarryOut();
  state_.workers.erase("w1");
  Leave("w1", MemberRole::Kept);
  const PlanDecision away = CarryOut();
  EXPECT_THAT(away.moves, IsEmpty());
  EXPECT_EQ(away.groups, before.groups);
}

TEST_F(PlanTest, AKeptWorkerOfAClusterOfOneGroupSplitsNothing) {
  Join("w1");
  Join("w2");
  state_.workers["w1"].limits.handlers = state_.workers["w2"].limits.handlers = {{"a", "b"}};
  CarryOut();
  state_.workers.erase("w1");
  Leave("w1", MemberRole::Kept);
  const PlanDecision away = CarryOut();
  EXPECT_THAT(away.moves, IsEmpty());
  EXPECT_THAT(away.groups, IsEmpty());
}

// As where it is restarted while another brings a type that it does not run.
TEST_F(PlanTest, OfANewGroupNothingIsKeptForAWorkerThatMayNotHaveIt) {
  Join("w1");
  Join("w2");
  state_.workers["w1"].limits.handlers = state_.workers["w2"].limits.handlers = {{"a"}};
  CarryOut();
  Leave("w1", MemberRole::Kept);
  Join("w3");
  state_.workers["w3"].limits.handlers = {{"a", "z"}};
  for (const SliceMove& move : CarryOut(false).moves) EXPECT_THAT(move.slice, testing::EndsWith("@z"));
  EXPECT_EQ(Count("w1"), 32u);
  EXPECT_EQ(Count("w2"), 32u);
  EXPECT_EQ(Count("w3"), 64u);
}

TEST_F(PlanTest, AWorkerThatGetsNothingIsInThePlanOnceNothingCanBeOnItsWay) {
  Join("w1");
  CarryOut();
  for (int i = 2; i <= 65; ++i) Join("w" + std::to_string(i));
  EXPECT_THAT(Decide(false).wanted, SizeIs(1));
  EXPECT_THAT(CarryOut().wanted, SizeIs(64)) << "one slice each";
  EXPECT_THAT(Decide(false).wanted, SizeIs(64));
  EXPECT_THAT(Decide().wanted, SizeIs(65));
}

TEST_F(PlanTest, AWorkerIsNotToldThatItGetsNothingWhileAShardIsUnread) {
  state_.catalog = {.tables = {}, .unread = {"main"}};
  Join("w1");
  EXPECT_THAT(Decide().wanted, IsEmpty());
  state_.catalog = {.tables = {}, .unread = {}, .others = true};
  EXPECT_THAT(Decide().wanted, IsEmpty());
  state_.catalog = {};
  EXPECT_THAT(Decide().wanted, SizeIs(1)) << "there is nothing at all";
}

TEST_F(PlanTest, LoadBalanceNumbersLimitAWorker) {
  Join("w1");
  Join("w2");
  state_.workers["w1"].limits.load_balance = {{0, 1, 2}};
  CarryOut();
  EXPECT_THAT(state_.assigned["w1"].slices,
              testing::IsSubsetOf({"main/tasks/0", "main/tasks/1", "main/tasks/2"}));
  EXPECT_EQ(Count("w1") + Count("w2"), 64u);
  state_.workers["w2"].limits.load_balance = {{1, 2, 3}};
  EXPECT_THAT(CarryOut().unplaceable, SizeIs(60));
}

TEST_F(PlanTest, AWorkerOnProbationThatCameBackLimitedGivesUpWhatItMayNotHave) {
  Join("w1");
  Join("w2");
  CarryOut();
  Leave("w1", MemberRole::Probation);
  Leave("w2", MemberRole::Probation);
  state_.workers["w1"].limits.handlers = state_.workers["w2"].limits.handlers = {{"a"}};
  Join("w3");
  state_.workers["w3"].limits.handlers = {{"b"}};
  EXPECT_THAT(CarryOut(false).unplaceable, IsEmpty());
  EXPECT_EQ(Count("w1") + Count("w2"), 64u);
  EXPECT_EQ(Count("w3"), 64u);
}

TEST_F(PlanTest, ShardsAndTablesLimitAWorker) {
  state_.catalog.tables = {{"east", "tasks", 4}, {"west", "tasks", 4}};
  Join("w1");
  Join("w2");
  state_.workers["w1"].limits.shards = {{"east"}};
  state_.workers["w2"].limits.tables = {{"west/tasks"}};
  CarryOut();
  EXPECT_THAT(state_.assigned["w1"].slices, testing::Each(testing::StartsWith("east/")));
  EXPECT_THAT(state_.assigned["w2"].slices, testing::Each(testing::StartsWith("west/")));
}

TEST_F(PlanTest, WithLimitsOfEveryKindASliceIsWithSomebodyWhoMayHaveItOrThereIsNobody) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto names = [&](std::vector<std::string> all) {
      std::erase_if(all, [&](const std::string&) { return random() % 2 == 0; });
      return all;
    };
    state_ = {};
    state_.catalog.tables = {{"east", "mails", 6}, {"east", "tasks", 8, {11}}, {"west", "tasks", 8}};
    for (const char* id : {"w1", "w2", "w3", "w4", "w5"}) {
      constexpr std::array kRoles = {MemberRole::Probation, MemberRole::Flapping, MemberRole::Active,
                                     MemberRole::Active};
      Join(id, kRoles[random() % kRoles.size()]);
      WorkerDocument& worker = state_.workers[id];
      if (random() % 2 == 0) worker.limits.handlers = names({"a", "b", "c"});
      if (worker.limits.handlers && worker.limits.handlers->empty()) worker.limits.handlers = {{"c"}};
      if (random() % 2 == 0)
        worker.limits.load_balance = {{0, 1, static_cast<std::uint32_t>(2 + random() % 10)}};
      if (random() % 3 == 0) worker.limits.shards = names({"east", "west"});
      if (random() % 3 == 0) worker.limits.tables = names({"mails", "west/tasks"});
    }
    for (int round = 0; round < 2; ++round) {
      const PlanDecision decision = CarryOut();
      for (const auto& [id, slices] : decision.wanted) {
        for (const std::string& slice : slices)
          EXPECT_TRUE(Accepts(state_.workers[id], slice, decision.groups))
              << "seed " << seed << ": " << id << " has " << slice;
      }
      for (const std::string& slice : decision.unplaceable) {
        for (const auto& [id, worker] : state_.workers)
          EXPECT_FALSE(Accepts(worker, slice, decision.groups))
              << "seed " << seed << ": nobody has " << slice << ", which " << id << " accepts";
      }
    }
    EXPECT_THAT(Decide().moves, IsEmpty()) << "seed " << seed;
  }
}

TEST_F(PlanTest, RetiredTablesLeaveThePlanAndMoreSlicesJoinIt) {
  Join("w1");
  Join("w2");
  CarryOut();
  state_.catalog.tables = {{"main", "tasks", 96}};
  EXPECT_THAT(CarryOut(false).moves, SizeIs(32));
  state_.catalog.tables = {{"main", "tasks", 32}};
  CarryOut();
  EXPECT_EQ(Count("w1") + Count("w2"), 32u);
}

TEST_F(PlanTest, WhatIsAssignedOfAShardThatCannotBeReadStaysPlanned) {
  state_.catalog.tables = {{"east", "tasks", 8}, {"west", "tasks", 8}};
  Join("w1");
  Join("w2");
  CarryOut();
  state_.catalog = {{{"east", "tasks", 8}}, {"west"}};
  EXPECT_THAT(CarryOut().moves, IsEmpty());
  Leave("w2");
  state_.workers.erase("w2");
  CarryOut();
  EXPECT_EQ(Count("w1"), 16u);
}

TEST_F(PlanTest, WhereMoreShardsMayBeNamedWhatIsAssignedOfThemStaysPlanned) {
  Join("w1");
  state_.catalog.tables = {{"east", "tasks", 4}, {"main", "tasks", 4}};
  CarryOut();
  state_.catalog = {{{"main", "tasks", 2}}, {}, true};
  CarryOut();
  EXPECT_EQ(Count("w1"), 6u);
  state_.catalog.others = false;
  CarryOut();
  EXPECT_EQ(Count("w1"), 2u);
}

TEST_F(PlanTest, OfAShardThatCannotBeReadNothingIsPlannedThatNobodyHas) {
  state_.catalog.tables = {{"main", "tasks", 4, {9000}}};  // a row stands there still
  Join("w1");
  CarryOut();
  state_.catalog = {{}, {"main"}};
  EXPECT_THAT(CarryOut().moves, IsEmpty());
  EXPECT_EQ(Count("w1"), 5u);
}

TEST_F(PlanTest, ASliceInTwoDocumentsIsLeftWithOne) {
  Join("w1");
  Join("w2");
  CarryOut();
  state_.assigned["w2"].slices = state_.assigned["w1"].slices;
  CarryOut();
  EXPECT_EQ(Count("w1") + Count("w2"), 64u);
}

TEST(TableCatalogTest, ItsTablesAreSortedAndAShardThatCannotBeReadIsNamed) {
  TableCatalog catalog;
  const std::vector<TableInfo> two{{"u", 4, {7}}, {"t", 2, {}}};
  catalog.Add("b", &two);
  catalog.Add("a", nullptr);
  EXPECT_EQ(catalog.tables, (std::vector<PlannedTable>{{"b", "t", 2, {}}, {"b", "u", 4, {7}}}));
  EXPECT_EQ(catalog.unread, std::set<std::string>{"a"});
}

}  // namespace
}  // namespace millrace::engine
