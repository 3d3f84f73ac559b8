#include "coordinator/planner/handler_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

namespace millrace::engine {

void PrintTo(const HandlerGroup& group, std::ostream* out) {
  *out << group.name << ':';
  for (const std::string& handler : group.handlers) *out << ' ' << handler;
}

namespace {

using ::testing::ElementsAre;

using Workers = std::vector<AcceptedHandlers>;
using Handlers = std::vector<std::string>;

const AcceptedHandlers kAll = std::nullopt;

TEST(HandlerGroupsTest, WorkersThatAcceptTheSameShareOneGroup) {
  EXPECT_THAT(DeriveGroups(Workers{kAll, kAll}, {}), ElementsAre(HandlerGroup{"default", {"*"}}));
  EXPECT_THAT(DeriveGroups(Workers{Handlers{"a", "b"}, Handlers{"a", "b"}}, {}),
              ElementsAre(HandlerGroup{"default", {"a", "b"}}));
}

TEST(HandlerGroupsTest, WhereNoHandlerIsKnownThereIsStillAnOwner) {
  EXPECT_THAT(DeriveGroups(Workers{}, {}), ElementsAre(HandlerGroup{"default", {}}));
  EXPECT_THAT(DeriveGroups(Workers{Handlers{}}, {}), ElementsAre(HandlerGroup{"default", {}}));
}

TEST(HandlerGroupsTest, TheProgramsOwnTypesNameNoGroup) {
  EXPECT_THAT(
      DeriveGroups(Workers{Handlers{"millrace.mail", "noop"}, Handlers{"exec", "millrace.mail", "noop"}}, {}),
      ElementsAre(HandlerGroup{"exec", {"exec"}}, HandlerGroup{"noop", {"noop", "millrace.mail"}}));
}

TEST(HandlerGroupsTest, HandlersOfTheSameWorkersAreAGroupCalledByItsFirst) {
  EXPECT_THAT(DeriveGroups(Workers{Handlers{"a", "b", "c"}, Handlers{"c", "d"}}, {}),
              ElementsAre(HandlerGroup{"a", {"a", "b"}}, HandlerGroup{"c", {"c"}}, HandlerGroup{"d", {"d"}}));
}

TEST(HandlerGroupsTest, WhoAcceptsEverythingTakesWhatNobodyElseNames) {
  EXPECT_THAT(DeriveGroups(Workers{Handlers{"a"}, kAll}, {}),
              ElementsAre(HandlerGroup{"a", {"a"}}, HandlerGroup{"default", {"*"}}));
}

TEST(HandlerGroupsTest, AWorkerWithoutHandlersMakesNoSecondGroup) {
  EXPECT_THAT(DeriveGroups(Workers{Handlers{"a"}, Handlers{}}, {}),
              ElementsAre(HandlerGroup{"default", {"a"}}));
}

TEST(HandlerGroupsTest, ConfiguredGroupsStayWhole) {
  EXPECT_THAT(DeriveGroups(Workers{Handlers{"a", "b", "c"}, Handlers{"b", "c"}}, {{"a", "x"}, {"b", "x"}}),
              ElementsAre(HandlerGroup{"default", {"c"}}, HandlerGroup{"x", {"a", "b"}}));
  EXPECT_THAT(DeriveGroups(Workers{Handlers{"a"}}, {{"a", "x"}}), ElementsAre(HandlerGroup{"x", {"a"}}));
}

TEST(HandlerGroupsTest, ADerivedNameThatIsTakenGetsADash) {
  EXPECT_THAT(DeriveGroups(Workers{Handlers{"b", "x"}, Handlers{"b", "default"}}, {{"b", "x"}}),
              ElementsAre(HandlerGroup{"default-", {"default"}}, HandlerGroup{"x", {"b"}},
                          HandlerGroup{"x-", {"x"}}));
}

TEST(HandlerGroupsTest, AGroupIsCarriedFromWhereItsFirstHandlerWas) {
  const std::vector<HandlerGroup> one{{"default", {"a", "b"}}};
  const std::vector<HandlerGroup> two{{"a", {"a"}}, {"b", {"b"}}};
  EXPECT_EQ(CarriedFrom(two[0], one), "default");
  EXPECT_EQ(CarriedFrom(two[1], one), "default");
  EXPECT_EQ(CarriedFrom(one[0], two), "a");
  EXPECT_EQ(CarriedFrom({"b", {"b", "c"}}, two), "b");
}

TEST(HandlerGroupsTest, ANewHandlerIsCarriedFromTheRest) {
  EXPECT_EQ(CarriedFrom({"new", {"new"}}, std::vector<HandlerGroup>{{"a", {"a"}}, {"default", {"*"}}}),
            "default");
  EXPECT_EQ(CarriedFrom({"default", {}}, std::vector<HandlerGroup>{{"default", {"a"}}}), "default");
  EXPECT_EQ(CarriedFrom({"new", {"new"}}, std::vector<HandlerGroup>{{"a", {"a"}}}), "");
}

// Five handlers, a bit each; with the sixth bit every handler there is.
AcceptedHandlers FromBits(int bits) {
  if (bits > 31) return kAll;
  Handlers handlers;
  for (int i = 0; i < 5; ++i) {
    if (bits >> i & 1) handlers.emplace_back(1, static_cast<char>('a' + i));
  }
  return handlers;
}

rc::Gen<Workers> AnyWorkers() {
  return rc::gen::container<Workers>(rc::gen::map(rc::gen::inRange(0, 40), FromBits));
}

bool AcceptsAll(const AcceptedHandlers& worker, const Handlers& handlers) {
  return !worker || std::all_of(handlers.begin(), handlers.end(), [&](const std::string& handler) {
    return std::find(worker->begin(), worker->end(), handler) != worker->end();
  });
}

// So no task waits for ever though a worker could run it, and none is owned by a worker that can't run it.
TEST(HandlerGroupsTest, WhoAcceptsAHandlerAcceptsTheGroupThatHasIt) {
  EXPECT_TRUE(rc::check([] {
    const Workers workers = *AnyWorkers();
    std::map<std::string, int> groups_of;
    for (const HandlerGroup& group : DeriveGroups(workers, {})) {
      for (const std::string& handler : group.handlers) {
        ++groups_of[handler];
        for (const AcceptedHandlers& worker : workers) {
          RC_ASSERT(AcceptsAll(worker, {handler}) == AcceptsAll(worker, group.handlers));
        }
      }
    }
    for (const AcceptedHandlers& worker : workers) {
      for (const std::string& handler : worker.value_or(Handlers{kEveryOther})) {
        RC_ASSERT(groups_of[handler] == 1);
      }
    }
  }));
}

TEST(HandlerGroupsTest, TheOrderOfWorkersChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    const Workers workers = *AnyWorkers();
    const Workers turned(workers.rbegin(), workers.rend());
    RC_ASSERT(DeriveGroups(workers, {{"b", "x"}}) == DeriveGroups(turned, {{"b", "x"}}));
  }));
}

}  // namespace
}  // namespace millrace::engine
