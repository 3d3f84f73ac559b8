#include "coordinator/app/cluster/cluster_snapshot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(SliceOwnerTest, TheAssignmentThatNamesTheSliceSaysIt) {
  ClusterSnapshot snapshot;
  snapshot.assigned["w1"] = {1, 1, {"main/tasks/0", "main/tasks/1"}, {}};
  snapshot.assigned["w2"] = {1, 1, {"main/tasks/2"}, {}};
  EXPECT_EQ(SliceOf(snapshot, "main", "tasks", 2, "noop"), "main/tasks/2");
  EXPECT_EQ(OwnerOf(snapshot, "main/tasks/2"), "w2");
  EXPECT_EQ(OwnerOf(snapshot, "main/tasks/3"), "");
}

TEST(SliceOwnerTest, WhereThereAreGroupsTheTasksTypeDecides) {
  ClusterSnapshot snapshot;
  snapshot.assigned["w1"] = {1, 1, {"main/tasks/0@mail"}, {{"mail", {"send_mail"}}}};
  snapshot.assigned["w2"] = {1, 1, {"main/tasks/0"}, {{"default", {"*"}}}};
  EXPECT_EQ(SliceOf(snapshot, "main", "tasks", 0, "send_mail"), "main/tasks/0@mail");
  EXPECT_EQ(SliceOf(snapshot, "main", "tasks", 0, "noop"), "main/tasks/0");
}

TEST(PlanStateTest, ItsSlicesAreOfTheGroupsThatAreConfigured) {
  ClusterSnapshot snapshot;
  for (const char* id : {"w1", "w2"}) snapshot.workers[id] = {.incarnation = id};
  const std::map<std::string, std::vector<std::string>> groups{{"default", {"*"}}, {"mail", {"send_mail"}}};
  snapshot.assigned["w1"] = {1, 1, {"main/tasks/0@mail", "main/tasks/1@mail"}, groups};
  snapshot.assigned["w2"] = {1, 1, {"main/tasks/0", "main/tasks/1"}, groups};
  Config config;
  config.handlers["noop"] = {};
  config.handlers["send_mail"].group = "mail";
  PlanState state = PlanStateOf(snapshot, {"w1"}, config);
  state.catalog.tables = {{"main", {"tasks", 2}}};
  std::vector<std::string> moved;
  for (const SliceMove& move : DecidePlan(state, true).moves) moved.push_back(move.slice);
  EXPECT_THAT(moved, ElementsAre("main/tasks/0@mail", "main/tasks/1@mail"));
}

TEST(PlanStateTest, NothingIsKeptForOneThatIsDrainedWhileItIsAway) {
  ClusterSnapshot snapshot;
  snapshot.expected = {"w1"};
  snapshot.assigned["w1"] = {1, 1, {"main/tasks/0"}, {}};
  EXPECT_EQ(PlanStateOf(snapshot, {}, {}).roles.at("w1"), MemberRole::Kept);
  EXPECT_EQ(PlanStateOf(snapshot, {"w1"}, {}).roles.at("w1"), MemberRole::Gone);
}

TEST(OpenBreakersTest, OneThatNoWorkerHasHoldsNothingBack) {
  ClusterSnapshot snapshot;
  const auto left = [&snapshot] {
    for (const char* type : {"former", "pay"}) snapshot.breakers[type] = {};
    DropEndedBreakers(snapshot);
    std::vector<std::string> types;
    for (const auto& [type, breaker] : snapshot.breakers) types.push_back(type);
    return types;
  };
  EXPECT_THAT(left(), ElementsAre("former", "pay")) << "nobody is there to say so";
  snapshot.workers["w1"] = {};
  snapshot.workers["w2"] = {};
  snapshot.statuses["w1"] = {{"breakers", {{"pay", {{"open", true}}}}}};
  EXPECT_THAT(left(), ElementsAre("former", "pay")) << "w2 has not said yet what it has";
  snapshot.statuses["w2"] = nlohmann::ordered_json::object();
  EXPECT_THAT(left(), ElementsAre("pay"));
  snapshot.statuses["w2"] = {{"breakers", "rubbish"}};
  EXPECT_THAT(left(), ElementsAre("pay"));
}

TEST(StatusPartTest, WhatIsNotThereOrIsSomethingElseSaysNothing) {
  const nlohmann::ordered_json status{{"full", {"pay", 5, "mail"}}, {"running", -3}, {"lag_ms", "x"}};
  EXPECT_THAT(TextsPart(status, "full"), ElementsAre("pay", "mail"));
  EXPECT_THAT(TextsPart(status, "running"), IsEmpty());
  EXPECT_THAT(TextsPart(status["full"], "full"), IsEmpty());
  EXPECT_EQ(NumberIfThere(status, "running"), 0.0);
  EXPECT_EQ(NumberIfThere(status, "lag_ms"), std::nullopt);
  EXPECT_EQ(NumberIfThere(status, "claims"), std::nullopt);
}

TEST(TypesOfTest, AreKnownWhereEachWorkerTellsThem) {
  std::map<std::string, WorkerDocument> workers;
  EXPECT_EQ(TypesOf(workers), std::nullopt) << "there is none";
  workers["w1"].limits.handlers = {"noop", "pay"};
  workers["w2"].limits.handlers = {"mail", "pay"};
  EXPECT_EQ(TypesOf(workers), (std::set<std::string>{"mail", "noop", "pay"}));
  workers["w3"] = {};
  EXPECT_EQ(TypesOf(workers), std::nullopt) << "w3 may run any";
}

TEST(SliceRangesTest, NumbersThatFollowOneAnotherAreARange) {
  EXPECT_THAT(SliceRanges({"main/tasks/0", "main/tasks/1", "main/tasks/10", "main/tasks/2"}),
              ElementsAre("main/tasks/0-2,10"));
  EXPECT_THAT(SliceRanges({}), IsEmpty());
}

TEST(SliceRangesTest, EachTableAndGroupStandsByItself) {
  EXPECT_THAT(SliceRanges({"a/t/1", "a/t/1@mail", "a/t/2@mail", "a/u/1", "b/t/1"}),
              ElementsAre("a/t/1", "a/t/1-2@mail", "a/u/1", "b/t/1"));
}

TEST(SliceRangesTest, WhatIsNoSliceIsShownAsItIs) {
  EXPECT_THAT(SliceRanges({"rubbish", "a/t/1"}), ElementsAre("a/t/1", "rubbish"));
}

}  // namespace
}  // namespace millrace::engine
