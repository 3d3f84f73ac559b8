#include "coordinator/leader/leader.h"

#include <gmock/gmock.h>

#include "coordinator/coordination/config_change.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/member/member.h"
#include "framework/base/time_text.h"
#include "tests/support/machine_room.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;

// As long as a table's name may be.
constexpr TableName kLongTable = "tttttttttttttttttttttttttttttttttttttttttttttttt";
static_assert(kLongTable.text().size() == TableName::kMaxSize);

// Workers that follow, each of them a candidate, on one tree.
class LeaderTest : public testing::Test {
 protected:
  struct Process {
    Process(LeaderTest& test, const std::string& id, const std::string& life,
            std::optional<std::vector<std::string>> types)
        : member({id,
                  WorkerDocument{.host = "h", .incarnation = life, .limits = {.handlers = std::move(types)}}},
                 ConfigLayers(), CallsOf(test.databases_)),
          leader({id, life, {}},
                 {[&test, id] { return test.FactsOf(id); },
                  [&test](const std::vector<SliceMove>& moves) {
                    test.moves_ += static_cast<int>(moves.size());
                  },
                  nullptr, nullptr, [&test](const std::string& path) { test.repaired_.push_back(path); },
                  [](BootTime at) { return WallTime(at.time_since_epoch()); }, nullptr, nullptr, nullptr,
                  nullptr,
                  [&test] {
                    return LivesByShard{{"main", test.lives_in_main_}};
                  },
                  [&test](const std::string&) { ++test.refused_; },
                  [&test](const std::string& path) { test.denied_.push_back(path); }}) {}
    static Member::Calls CallsOf(const std::map<std::string, std::string>& databases) {
      Member::Calls calls{[](const MemberView&) {}, nullptr, nullptr};
      calls.databases = [databases] { return databases; };
      return calls;
    }
    Member member;
    Leader leader;
  };

  LeaderTest() { SetTables({{"main", "tasks", 64}}); }
  void SetTables(std::vector<PlannedTable> tables) {
    facts_.catalog = std::make_shared<const TableCatalog>(TableCatalog{std::move(tables), {}});
  }
  void Start(const std::string& id, std::optional<std::vector<std::string>> types = {}) {
    auto& process = processes_[id];
    process = std::make_unique<Process>(*this, id, id + "." + std::to_string(++lives_), std::move(types));
    room_.Add(process->member);
    room_.Add(process->leader);
    ASSERT_TRUE(room_.Settle());
  }
  LeaderFacts FactsOf(const std::string& id) {
    LeaderFacts facts = facts_;
    if (unread_.contains(id)) facts.unread = unread_.at(id);
    return facts;
  }
  void Kill(const std::string& id) {
    room_.Kill(processes_[id]->member);
    room_.Kill(processes_[id]->leader);
    ASSERT_TRUE(room_.Settle());
  }
  void Leave(const std::string& id) {
    room_.Leave(processes_[id]->member);
    room_.Leave(processes_[id]->leader);
    ASSERT_TRUE(room_.Settle());
  }
  // So long a leader looks whether more are lost than one.
  void Gather() { ASSERT_TRUE(room_.Pass(seconds(1))); }
  void Quiet() { ASSERT_TRUE(room_.Pass(seconds(30))); }
  std::size_t Count(const std::string& id) { return processes_[id]->member.View().slice_count; }
  int Moves() { return std::exchange(moves_, 0); }

  MachineRoom room_;
  LeaderFacts facts_;
  std::map<std::string, std::vector<std::string>> unread_;  // by candidate: the shards that it can't read
  std::map<std::string, std::unique_ptr<Process>> processes_;
  std::vector<std::string> repaired_;
  std::vector<std::string> denied_;
  std::map<std::string, std::string> databases_;  // that a process finds that starts now
  SeenLives lives_in_main_;
  int moves_ = 0;
  int lives_ = 0;
  int refused_ = 0;
};

TEST_F(LeaderTest, AFullMultiAndVeryManyOnProbationAreWrittenAllTheSame) {
  Start("w1");
  const auto come = [&](int life) {
    for (int i = 0; i < 1000; ++i) {
      const std::string id = "worker-with-a-name-that-is-rather-long-" + std::to_string(i);
      room_.Put("/workers/" + id, ToText(WorkerDocument{.incarnation = std::to_string(life)}));
    }
    ASSERT_TRUE(room_.Settle());
  };
  come(1);
  come(2);  // each has ended without a word
  const std::string shard(48, 's');
  SetTables({{shard, kLongTable, 8000}});
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_EQ(Count("w1"), 8000u);
  const auto plan = ReadPlan(room_.Data("/plan"));
  EXPECT_EQ(plan->slices, 8000u);
  EXPECT_EQ(plan->on_probation, 1000u);
  EXPECT_EQ(plan->probation.size(), 100u);
}

TEST_F(LeaderTest, AFullMultiAndALongPlanAreWrittenOneAfterTheOther) {
  std::vector<std::string> types;
  for (int i = 100; i < 200; ++i) types.push_back(std::string(660, 'a') + std::to_string(i));
  Start("w1", types);
  Start("w2", {{"b"}});
  SetTables({{std::string(48, 's'), kLongTable, 400}});
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_EQ(Count("w1"), 400u);
  EXPECT_EQ(Count("w2"), 400u);
  const auto plan = ReadPlan(room_.Data("/plan"));
  EXPECT_EQ(plan->slices, 800u);
  EXPECT_EQ(plan->groups.size(), 2u);
}

TEST_F(LeaderTest, AnAnnouncementThatWasMadeAnewIsNotTakenForTheOneThatIsOver) {
  Start("w1");
  Start("w2");
  room_.Put("/control/expect/w1", R"({"seconds":5})");
  ASSERT_TRUE(room_.Settle());
  room_.LoseNews(true);  // the leader is about to remove it, and somebody extends it
  room_.Put("/control/expect/w1", R"({"seconds":3600})");
  ASSERT_TRUE(room_.Pass(seconds(6)));
  room_.LoseNews(false);
  ASSERT_TRUE(room_.Has("/control/expect/w1"));
  Kill("w1");
  Quiet();
  EXPECT_EQ(ReadAssign(room_.Data("/assign/w1"))->slices.size(), 64u);
}

TEST_F(LeaderTest, TellsWhichTypesNobodyRuns) {
  Start("w1");
  facts_.unrunnable = {"main: mail"};
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_THAT(room_.Data("/plan"), testing::HasSubstr(R"("unrunnable":["main: mail"])"));
}

TEST_F(LeaderTest, HoweverMuchThereIsToTellThePlanIsWritten) {
  for (int i = 0; i < 5000; ++i) {
    facts_.unrunnable.push_back("main: type" + std::to_string(i) + std::string(60, 'x'));
    facts_.troubles.push_back("shard s" + std::to_string(i) + ": away");
  }
  Start("w1");
  EXPECT_EQ(Count("w1"), 64u);
  EXPECT_THAT(room_.Data("/plan"), testing::HasSubstr("and 4900 more"));
}

TEST_F(LeaderTest, TellsWhatKeepsItFromPlanningAndPlansWhenThatIsOver) {
  const auto catalog = std::exchange(facts_.catalog, nullptr);
  Start("w1");
  EXPECT_FALSE(room_.Has("/plan"));  // it may know more in a moment
  facts_.troubles = {"no shard is known"};
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_THAT(room_.Data("/plan"), testing::HasSubstr(R"("troubles":["no shard is known"])"));
  EXPECT_EQ(Count("w1"), 0u);
  facts_ = {catalog};
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_EQ(Count("w1"), 64u);
  EXPECT_THAT(room_.Data("/plan"), testing::HasSubstr(R"("troubles":[])"));
}

TEST_F(LeaderTest, TellsThatWorkersMeanDifferentDatabasesByOneName) {
  Start("w1");
  databases_["main"] = "yesterday";
  Start("w2");
  ASSERT_TRUE(room_.Pass(seconds(2)));
  EXPECT_THAT(room_.Data("/plan"), testing::HasSubstr(R"("troubles":[])"));
  Kill("w1");
  databases_["main"] = "today";
  Start("w1");
  ASSERT_TRUE(room_.Pass(seconds(2)));
  EXPECT_THAT(room_.Data("/plan"), testing::HasSubstr("different databases by the shard main: w1 "));
}

TEST_F(LeaderTest, TellsUntilWhenAWorkerIsOnProbation) {
  Start("w1");
  Start("w2");
  Kill("w2");
  Gather();
  Start("w2");
  const auto until = ReadPlan(room_.Data("/plan"))->probation;
  ASSERT_TRUE(until.contains("w2")) << room_.Data("/plan");
  EXPECT_GT(ParseTime(until.at("w2"))->time_since_epoch(), room_.now().time_since_epoch());
  Quiet();
  EXPECT_TRUE(ReadPlan(room_.Data("/plan"))->probation.empty());
}

TEST_F(LeaderTest, TheFirstWorkerHasAllAndTheNextGetItsPartWhenItIsQuiet) {
  Start("w1");
  EXPECT_EQ(Count("w1"), 64u);
  Start("w2");
  EXPECT_EQ(Count("w2"), 0u);
  Quiet();
  EXPECT_EQ(Count("w1"), 32u);
  EXPECT_EQ(Count("w2"), 32u);
  EXPECT_EQ(Moves(), 64 + 32);
}

// Else it would never be ready.
TEST_F(LeaderTest, AWorkerThatStandsByHasAnAssignmentThatGivesItNothing) {
  Start("w1");
  Start("w2");
  EXPECT_FALSE(room_.Has("/assign/w2")) << "its first slices may be on their way";
  SetTables({{"main", "tasks", 1}});
  Quiet();
  EXPECT_EQ(Count("w1") + Count("w2"), 1u);
  for (const char* id : {"w1", "w2"}) EXPECT_GT(processes_[id]->member.View().generation, 0u) << id;
}

TEST_F(LeaderTest, ALeaderThatAloneCanNotReadAShardGivesWayToOneThatCan) {
  unread_ = {{"w1", {}}, {"w2", {"east"}}, {"w3", {}}};
  for (const char* id : {"w1", "w2", "w3"}) Start(id);
  unread_["w1"] = {"east", "main"};
  for (int i = 0; i < 25; ++i) ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_TRUE(processes_["w1"]->leader.Leading());  // it may be a short trouble
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_FALSE(processes_["w1"]->leader.Leading());
  EXPECT_TRUE(processes_["w3"]->leader.Leading());  // w2, the next, could not either
  // It comes back behind the others, and leads where nobody else does.
  for (int i = 0; i < 90; ++i) ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_TRUE(processes_["w3"]->leader.Leading());
  Kill("w2");
  Kill("w3");
  EXPECT_TRUE(processes_["w1"]->leader.Leading());
}

TEST_F(LeaderTest, WhereNobodyCanReadAShardTheLeaderStays) {
  unread_ = {{"w1", {"east"}}, {"w2", {"east"}}};
  Start("w1");
  Start("w2");
  for (int i = 0; i < 90; ++i) ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_TRUE(processes_["w1"]->leader.Leading());
}

TEST_F(LeaderTest, EachOwnerHasItsShareOfALimitAndADeadOneKeepsItUntilTheShardsSaySo) {
  facts_.limits = {{"mail", {.rate = 100}}};
  for (const char* id : {"w1", "w2"}) Start(id);
  Quiet();
  const auto rate = [&](const char* id) {
    const LimitShares& shares = *processes_[id]->member.View().shares;
    return shares.contains("mail") ? shares.at("mail").rate : 0;
  };
  EXPECT_NEAR(rate("w1"), 50, 3);
  EXPECT_NEAR(rate("w2"), 50, 3);
  EXPECT_LE(rate("w1") + rate("w2"), 100);
  lives_in_main_ = {room_.now() + seconds(3600), {{"w2", "w2.5"}}};
  Kill("w2");
  Quiet();
  EXPECT_EQ(Count("w1"), 64u);
  EXPECT_LT(rate("w1"), 55);
  EXPECT_TRUE(ReadAssign(room_.Data("/assign/w2"))->shares.contains("mail"));
  lives_in_main_.alive.clear();
  Quiet();
  EXPECT_GE(rate("w1"), 99);
  EXPECT_TRUE(ReadAssign(room_.Data("/assign/w2")).value_or(AssignDocument{}).shares.empty());
}

TEST_F(LeaderTest, WhileAPageMayNotBeReadNobodyIsAskedWithoutAPauseForTheSharesOfLimits) {
  facts_.limits = {{"mail", {.rate = 100}}};
  for (const char* id : {"w1", "w2"}) Start(id);
  Quiet();
  room_.Deny("/assign/w2");
  ASSERT_TRUE(room_.Pass(seconds(11)));
  EXPECT_GT(processes_["w1"]->leader.WakeAt(room_.now()), room_.now());
}

TEST_F(LeaderTest, OneThatLeavesInGoodOrderFreesItsShareOfARateAtOnce) {
  facts_.limits = {{"mail", {.rate = 100}}};
  for (const char* id : {"w1", "w2"}) Start(id);
  Quiet();
  lives_in_main_ = {room_.now() + seconds(3600), {{"w2", "w2.5"}}};
  Leave("w2");
  ASSERT_TRUE(room_.Pass(seconds(2)));
  EXPECT_GE(processes_["w1"]->member.View().shares->at("mail").rate, 99);
}

TEST_F(LeaderTest, ADeadWorkersSlicesAreTakenWithinASecond) {
  for (const char* id : {"w1", "w2", "w3"}) Start(id);
  Quiet();
  Moves();
  const std::size_t lost = Count("w3");
  Kill("w3");
  Gather();
  EXPECT_EQ(Count("w1") + Count("w2"), 64u);
  EXPECT_EQ(Moves(), static_cast<int>(lost));
}

TEST_F(LeaderTest, ADeadLeaderIsFollowedByAnotherWithoutExtraMoves) {
  for (const char* id : {"w1", "w2", "w3"}) Start(id);
  Quiet();
  Moves();
  const std::size_t lost = Count("w1");
  ASSERT_TRUE(processes_["w1"]->leader.Leading());
  Kill("w1");
  Gather();
  EXPECT_EQ(Count("w2") + Count("w3"), 64u);
  EXPECT_EQ(Moves(), static_cast<int>(lost));
}

TEST_F(LeaderTest, ALostReplyToAPlanCostsNothing) {
  Start("w1");
  Start("w2");
  room_.LoseNextReply();
  Quiet();
  EXPECT_EQ(Count("w1"), 32u);
  EXPECT_EQ(Count("w2"), 32u);
}

// Whoever was cut off with the leader has as long to come back.
TEST_F(LeaderTest, NobodyIsMissedBeforeTheTimeThatTheServersGrant) {
  room_.Grant(seconds(40));
  Start("w1");
  Start("w2");
  Quiet();
  Quiet();
  ASSERT_EQ(Count("w1"), 32u);
  room_.Reconnect(processes_["w1"]->leader);
  room_.Reconnect(processes_["w2"]->leader);
  Kill("w2");
  ASSERT_TRUE(room_.Pass(seconds(20)));
  EXPECT_EQ(Count("w1"), 32u);
  ASSERT_TRUE(room_.Pass(seconds(25)));
  EXPECT_EQ(Count("w1"), 64u);
}

TEST_F(LeaderTest, AThirdOfTheWorkersLeavesInGoodOrderAndAllIsOwnedAtOnce) {
  for (int i = 1; i <= 12; ++i) Start("w" + std::to_string(i));
  Quiet();
  for (int i = 1; i <= 4; ++i) Leave("w" + std::to_string(i));  // the leader first
  std::size_t owned = 0;
  for (int i = 5; i <= 12; ++i) owned += Count("w" + std::to_string(i));
  EXPECT_EQ(owned, 64u);
  EXPECT_FALSE(ReadPlan(room_.Data("/plan"))->holding);
  EXPECT_FALSE(room_.Has("/leave/w1.1"));
}

TEST_F(LeaderTest, ARollingRestartInGoodOrderPutsNobodyOnProbation) {
  for (const char* id : {"w1", "w2", "w3"}) Start(id);
  Quiet();
  for (const char* id : {"w1", "w2", "w3"}) {
    Leave(id);
    Start(id);
    EXPECT_TRUE(ReadPlan(room_.Data("/plan"))->probation.empty());
  }
  Quiet();
  for (const char* id : {"w1", "w2", "w3"}) EXPECT_GE(Count(id), 21u);
}

TEST_F(LeaderTest, OneThatLeavesAndIsExpectedBackKeepsItsSlices) {
  for (const char* id : {"w1", "w2", "w3"}) Start(id);
  Quiet();
  Moves();
  room_.Put("/control/expect/w3", "");
  room_.Settle();
  Leave("w3");
  Gather();
  Start("w3");
  Quiet();
  EXPECT_EQ(Moves(), 0);
  EXPECT_FALSE(room_.Has("/leave/w3.3"));
}

TEST_F(LeaderTest, AnExpectedRestartMovesNothing) {
  for (const char* id : {"w1", "w2", "w3"}) Start(id);
  Quiet();
  Moves();
  room_.Put("/control/expect/w3", "");
  room_.Settle();
  Kill("w3");
  ASSERT_TRUE(room_.Pass(seconds(20)));
  EXPECT_EQ(Count("w1") + Count("w2"), 43u);
  Start("w3");
  Quiet();
  EXPECT_EQ(Moves(), 0);
  EXPECT_EQ(Count("w3"), 21u);
  EXPECT_FALSE(room_.Has("/control/expect/w3"));
}

TEST_F(LeaderTest, AnExpectedRestartOfTheLeaderMovesNothingWhereWorkersDifferInTheirTypes) {
  Start("w1", {{"a"}});
  Start("w2", {{"a", "b"}});
  Quiet();
  Moves();
  ASSERT_TRUE(processes_["w1"]->leader.Leading());
  room_.Put("/control/expect/w1", "");
  room_.Settle();
  Kill("w1");
  ASSERT_TRUE(room_.Pass(seconds(20)));
  EXPECT_EQ(Count("w2"), 64u);
  Start("w1", {{"a"}});
  Quiet();
  EXPECT_EQ(Moves(), 0);
  EXPECT_EQ(Count("w1"), 64u);
}

TEST_F(LeaderTest, DrainMovesExactlyTheDrainedSlices) {
  for (const char* id : {"w1", "w2", "w3"}) Start(id);
  Quiet();
  Moves();
  const std::size_t drained = Count("w2");
  room_.Put("/control/drain/w2", "");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(Count("w2"), 0u);
  EXPECT_EQ(Moves(), static_cast<int>(drained));
  room_.Write({{TreeWrite::Kind::Remove, "/control/drain/w2"}});
  ASSERT_TRUE(room_.Settle());
  Quiet();
  EXPECT_EQ(Count("w2"), 21u);
}

TEST_F(LeaderTest, AWorkerThatIsBackAfterEachCrashBeforeItsSessionEndsKeepsItsSlicesTwiceAtMost) {
  Start("w1");
  Start("w3");
  const auto begin_life = [&](int life) {
    room_.Put("/workers/w2", ToText(WorkerDocument{.incarnation = "w2." + std::to_string(life)}));
    ASSERT_TRUE(room_.Pass(seconds(2)));
  };
  const auto with_others = [&] { return Count("w1") + Count("w3"); };
  begin_life(0);
  Quiet();
  ASSERT_EQ(with_others(), 43u);
  begin_life(1);
  begin_life(2);
  EXPECT_EQ(with_others(), 43u);
  begin_life(3);
  EXPECT_EQ(with_others(), 64u);
  ASSERT_TRUE(room_.Pass(seconds(50)));
  EXPECT_EQ(with_others(), 64u);
  ASSERT_TRUE(room_.Pass(seconds(20)));  // it held out
  EXPECT_EQ(with_others(), 43u);
}

TEST_F(LeaderTest, AFlappingWorkersSlicesMoveOnceAway) {
  for (const char* id : {"w1", "w2", "w3"}) Start(id);
  Quiet();
  Moves();
  const int own = static_cast<int>(Count("w3"));
  for (int i = 0; i < 15; ++i) {
    Kill("w3");
    ASSERT_TRUE(room_.Pass(seconds(6)));
    Start("w3");
    ASSERT_TRUE(room_.Pass(seconds(6)));
  }
  EXPECT_LE(Moves(), 2 * own);
}

TEST_F(LeaderTest, AMassLossIsHeldAndTheOperatorsWordEndsIt) {
  SetTables({{"main", "tasks", 10}});
  for (int i = 1; i <= 12; ++i) Start("w" + std::to_string(i));
  Quiet();
  Moves();
  for (int i = 2; i <= 6; ++i) {
    room_.Kill(processes_["w" + std::to_string(i)]->member);
    room_.Kill(processes_["w" + std::to_string(i)]->leader);
  }
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(Moves(), 0);
  room_.Put("/control/proceed", "");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(Moves(), 5);
  EXPECT_FALSE(room_.Has("/control/proceed"));
}

TEST_F(LeaderTest, RubbishInAnAssignmentIsWrittenAnewAndTold) {
  Start("w1");
  Start("w2");
  Quiet();
  room_.Put("/assign/w1", "rubbish");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(Count("w1") + Count("w2"), 64u);
  EXPECT_TRUE(ReadAssign(room_.Data("/assign/w1")));
  EXPECT_THAT(repaired_, testing::ElementsAre("/assign/w1"));
}

TEST_F(LeaderTest, WhateverIsDeletedIsMadeAgainAndAllIsOwnedAtOnce) {
  for (const char* id : {"w1", "w2", "w3"}) Start(id);
  Quiet();
  std::vector<std::string> tops{"/"};
  for (const FixedNode& node : kFixedNodes) tops.emplace_back(node.path);
  for (const std::string& top : tops) {
    for (const std::string other : {"/assign", "/election", "/epoch"}) {
      const std::uint64_t before = ReadEpoch(room_.Data("/epoch"))->epoch;
      room_.Delete(top);
      if (room_.Has(other)) room_.Delete(other);
      ASSERT_TRUE(room_.Settle());
      ASSERT_TRUE(room_.Pass(seconds(1)));
      EXPECT_EQ(Count("w1") + Count("w2") + Count("w3"), 64u) << top << " and " << other;
      for (const FixedNode& node : kFixedNodes) EXPECT_TRUE(room_.Has(std::string(node.path))) << node.path;
      const bool ends = top == "/" || top == "/epoch" || other == "/epoch";
      EXPECT_GE(ReadEpoch(room_.Data("/epoch"))->epoch, before + (ends ? 1 : 0));
      EXPECT_FALSE(ReadEpoch(room_.Data("/epoch"))->leader.empty()) << top << " and " << other;
    }
  }
}

TEST_F(LeaderTest, ATermIsAboveThoseOfThePagesThatItFinds) {
  room_.Put("/assign/w1", ToText(AssignDocument{7, 1, {"main/tasks/0"}}));
  Start("w1");
  EXPECT_EQ(ReadEpoch(room_.Data("/epoch"))->epoch, 8u);
  EXPECT_EQ(ReadAssign(room_.Data("/assign/w1"))->epoch, 8u);
  EXPECT_EQ(Count("w1"), 64u);
}

TEST_F(LeaderTest, AnAssignmentTooLongForOneNodeHasPages) {
  SetTables({{"main", "a_table_with_quite_a_long_name_for_its_slices", 3000}});
  Start("w1");
  EXPECT_EQ(Count("w1"), 3000u);
  EXPECT_TRUE(room_.Has("/assign/w1/1"));
  EXPECT_LE(room_.Data("/assign/w1").size(), 100u * 1024);
  Start("w2");
  Quiet();
  EXPECT_EQ(Count("w1"), 1500u);
  EXPECT_EQ(Count("w2"), 1500u);
}

// The worker would read it as one of its pages.
TEST_F(LeaderTest, APageThatSomebodyMadeByHandGivesNoSliceToTwo) {
  Start("w1");
  Start("w2");
  Quiet();
  const std::string slice = ReadAssign(room_.Data("/assign/w2"))->slices.front();
  room_.Put("/assign/w1/7", ToText(AssignDocument{1, 1, {slice}}));
  room_.Put("/assign/w1/notes", "by hand");
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(Count("w1") + Count("w2"), 64u);
  Quiet();
  EXPECT_EQ(Count("w1"), 32u);
  EXPECT_EQ(Count("w2"), 32u);
  EXPECT_EQ(room_.Data("/assign/w1/notes"), "by hand");
}

TEST_F(LeaderTest, AssignmentsOfVeryManyWorkersThatAreGoneAreRemoved) {
  for (int i = 0; i < 250; ++i) room_.Put("/assign/gone-" + std::to_string(i), ToText(AssignDocument{1, 1}));
  Start("w1");
  Quiet();
  EXPECT_EQ(Count("w1"), 64u);
  EXPECT_FALSE(room_.Has("/assign/gone-0"));
  EXPECT_FALSE(room_.Has("/assign/gone-249"));
}

TEST_F(LeaderTest, AnOpenBreakerOfATypeThatHasNoneAnyMoreIsRemoved) {
  const auto status = [](const char* types) {
    return std::string(R"({"incarnation":"w2.1","breakers":)") + types + "}";
  };
  facts_.breakers = {"configured"};
  Start("w1");  // which says that it has none
  room_.Put("/workers/w2", ToText(WorkerDocument{.incarnation = "w2.1"}));
  room_.Put("/control/breaker", "");
  for (const char* type : {"configured", "of_workers", "former"})
    room_.Put(std::string("/control/breaker/") + type, R"({"state":"open"})");
  ASSERT_TRUE(room_.Pass(seconds(20)));
  EXPECT_TRUE(room_.Has("/control/breaker/former")) << "nobody has said yet what w2 has";
  room_.Put("/status/w2", status(R"({"of_workers":{},"former":{}})"));
  ASSERT_TRUE(room_.Pass(seconds(20)));
  EXPECT_TRUE(room_.Has("/control/breaker/former"));
  room_.Put("/status/w2", status(R"({"of_workers":{}})"));
  ASSERT_TRUE(room_.Pass(seconds(1)));
  ASSERT_TRUE(room_.Pass(seconds(9)));
  EXPECT_TRUE(room_.Has("/control/breaker/former")) << "it may be news that w2 has not told yet";
  ASSERT_TRUE(room_.Pass(seconds(1)));
  EXPECT_FALSE(room_.Has("/control/breaker/former"));
  EXPECT_TRUE(room_.Has("/control/breaker/of_workers"));
  EXPECT_TRUE(room_.Has("/control/breaker/configured"));
  facts_.breakers.clear();
  ASSERT_TRUE(room_.Pass(seconds(1)));
  ASSERT_TRUE(room_.Pass(seconds(10)));
  EXPECT_FALSE(room_.Has("/control/breaker/configured"));
}

TEST_F(LeaderTest, WhatCanNotBeRemovedHoldsUpNothing) {
  for (const char* path : {"/assign/gone", "/control/expect/gone", "/control/proceed"}) {
    room_.Put(path, path == std::string("/assign/gone") ? ToText(AssignDocument{1, 1}) : "");
    room_.Put(path + std::string("/by hand"), "");
  }
  room_.Put("/assign/other", ToText(AssignDocument{1, 1}));
  Start("w1");
  EXPECT_EQ(Count("w1"), 64u);
  ASSERT_TRUE(room_.Pass(seconds(90)));
  EXPECT_FALSE(room_.Has("/assign/other"));
  Start("w2");
  EXPECT_EQ(Count("w2"), 0u);  // the calm is kept
  Quiet();
  EXPECT_EQ(Count("w2"), 32u);
}

TEST_F(LeaderTest, WhatWasSetWithoutMillraceConfigIsNotedInTheHistory) {
  Start("w1");
  EXPECT_FALSE(room_.Has("/history/engine"));  // as the cluster was made
  room_.Put("/config/engine", R"({"poll":"1s"})");
  ASSERT_TRUE(room_.Settle());
  const auto noted = *ReadChange("0000000001", room_.Data("/history/engine/0000000001"));
  EXPECT_EQ(noted.version, 1);
  EXPECT_EQ(noted.text, R"({"poll":"1s"})");
  EXPECT_EQ(noted.by, kUnknownAuthor);
  // As millrace config does it.
  room_.Write({{TreeWrite::Kind::Set, "/config/engine", "{}"},
               NoteChange("engine", {2, "", "ann", "{}"}, {"0000000001"}).front()});
  ASSERT_TRUE(room_.Settle());
  EXPECT_EQ(ReadChange("0000000002", room_.Data("/history/engine/0000000002"))->by, "ann");
}

TEST_F(LeaderTest, AVersionWithTheNumberOfAnEarlierNodesIsNotedAsWell) {
  Start("w1");
  const auto set = [this](const char* poll) {
    room_.Put("/config/engine", R"({"poll":")" + std::string(poll) + "\"}");
    ASSERT_TRUE(room_.Settle());
  };
  for (const char* poll : {"1s", "2s", "3s"}) set(poll);
  room_.Delete("/config/engine");
  ASSERT_TRUE(room_.Pass(seconds(1)));  // whoever misses it makes it again
  for (const char* poll : {"4s", "5s"}) {
    set(poll);
    const std::string name = HistoryName(room_.Version("/config/engine"));
    EXPECT_EQ(ReadChange(name, room_.Data("/history/engine/" + name))->text, room_.Data("/config/engine"));
  }
  EXPECT_LE(room_.Version("/config/engine"), 2) << "these are numbers that stand already";
}

TEST_F(LeaderTest, WhatTheClusterDoesNotTakeIsToldOnce) {
  Start("w1");
  Quiet();
  for (const std::uint32_t slices : {128u, 256u}) {
    SetTables({{"main", "tasks", slices}});
    room_.RefuseNext();
    ASSERT_TRUE(room_.Pass(seconds(1)));
    Quiet();
    EXPECT_EQ(Count("w1"), slices);
  }
  EXPECT_EQ(refused_, 2) << "and again, once something was taken between";
}

TEST_F(LeaderTest, ANodeThatItMayNotReadHoldsUpNothingAndIsTold) {
  int number = 0;
  for (const std::string path :
       {"/workers/stranger", "/assign/stranger", "/status/stranger", "/control/expect/w9", "/control/drain",
        "/leave/w9.1", "/history/engine", "/config/engine", "/plan"}) {
    SCOPED_TRACE(path);
    if (!room_.Has(path)) room_.Put(path, path == "/config/engine" ? R"({"batch":9})" : "");
    room_.Deny(path);
    const std::string id = "w" + std::to_string(++number);
    denied_.clear();
    Start(id);
    ASSERT_TRUE(room_.Pass(seconds(1)));
    EXPECT_EQ(Count(id), 64u);
    if (path != "/status/stranger") {  // that is read where limits are divided
      EXPECT_THAT(denied_, testing::ElementsAre(path));
      if (path != "/plan") {
        EXPECT_THAT(ReadPlan(room_.Data("/plan"))->troubles,
                    testing::Contains(testing::HasSubstr(path.substr(1) + ": ZooKeeper does not let")));
      }
    }
    ASSERT_TRUE(room_.Pass(seconds(30)));
    EXPECT_LE(denied_.size(), 1u) << "told once";
    room_.Allow(path);
    ASSERT_TRUE(room_.Pass(seconds(11)));
    EXPECT_TRUE(ReadPlan(room_.Data("/plan"))->troubles.empty());
    Leave(id);
  }
}

TEST_F(LeaderTest, AWorkerWhosePageMayNotBeReadGetsNothingAndTheOthersAll) {
  Start("w1");
  Start("w2");
  Quiet();
  ASSERT_EQ(Count("w2"), 32u);
  room_.Deny("/assign/w2");
  ASSERT_TRUE(room_.Pass(seconds(11)));
  Quiet();
  Quiet();
  EXPECT_EQ(Count("w1"), 64u);
  EXPECT_EQ(refused_, 0);
  room_.Allow("/assign/w2");
  ASSERT_TRUE(room_.Pass(seconds(11)));
  Quiet();
  Quiet();
  EXPECT_EQ(Count("w1"), 32u);
  EXPECT_EQ(Count("w2"), 32u);
}

// A page that may not be made would be refused together with all other moves.
TEST_F(LeaderTest, WhoHasNoPageGetsNoneWhilePagesMayNotBeListed) {
  Start("w1");
  Start("w2");
  Quiet();
  room_.Deny("/assign");
  ASSERT_TRUE(room_.Pass(seconds(11)));
  Start("w9");
  Kill("w2");
  Quiet();
  EXPECT_EQ(Count("w9"), 0u);
  EXPECT_EQ(Count("w1"), 64u);
  room_.Allow("/assign");
  ASSERT_TRUE(room_.Pass(seconds(11)));
  Quiet();
  EXPECT_EQ(Count("w9"), 32u);
}

TEST_F(LeaderTest, WhoIsThereMayNotBeReadAndNothingMoves) {
  Start("w1");
  Start("w2");
  Quiet();
  Moves();
  for (const char* folder : {"/workers", "/assign"}) {
    SCOPED_TRACE(folder);
    room_.Deny(folder);
    room_.Expire(processes_["w1"]->leader);
    room_.Expire(processes_["w2"]->leader);
    ASSERT_TRUE(room_.Settle());
    Quiet();
    EXPECT_EQ(Moves(), 0);
    EXPECT_THAT(ReadPlan(room_.Data("/plan"))->troubles,
                testing::Contains(testing::HasSubstr(std::string(folder).substr(1))));
    room_.Allow(folder);
    Quiet();
  }
  EXPECT_EQ(Count("w1") + Count("w2"), 64u);
}

TEST_F(LeaderTest, AHistoryThatCanNotBeWrittenHoldsUpNothing) {
  room_.Write({{TreeWrite::Kind::Remove, "/history"}});
  room_.Put("/config/engine", R"({"poll":"1s"})");
  room_.Put("/assign/gone", ToText(AssignDocument{1, 1}));
  Start("w1");
  EXPECT_EQ(Count("w1"), 64u);
  EXPECT_FALSE(room_.Has("/assign/gone"));
}

TEST_F(LeaderTest, TheLastFiftyChangesAreKept) {
  Start("w1");
  for (int i = 0; i < 60; ++i) {
    room_.Put("/config/engine", R"({"batch":)" + std::to_string(i + 1) + "}");
    ASSERT_TRUE(room_.Settle());
  }
  EXPECT_FALSE(room_.Has("/history/engine/" + HistoryName(9)));
  EXPECT_TRUE(room_.Has("/history/engine/" + HistoryName(11)));
  EXPECT_TRUE(room_.Has("/history/engine/" + HistoryName(60)));
}

TEST_F(LeaderTest, AQuietClusterIsNotWrittenTo) {
  Start("w1");
  Start("w2");
  Quiet();
  const int writes = room_.writes();
  Quiet();
  EXPECT_LE(room_.writes() - writes, 2) << "each worker gives a sign of life once a minute, and nothing else";
}

}  // namespace
}  // namespace millrace::engine
