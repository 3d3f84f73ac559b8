#include "coordinator/planner/named_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "tests/unit/planner/plan_case.h"

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;

std::map<std::string, std::string> NamedPlan(const NamedInput& input) {
  const NumberedInput numbered = Number(input);
  const Plan plan = SolvePlan(numbered.input);
  std::map<std::string, std::string> named;
  for (std::size_t s = 0; s < plan.owners.size(); ++s) {
    if (plan.owners[s] != kNobody) named[numbered.slices[s]] = numbered.workers[plan.owners[s]];
  }
  return named;
}

std::string Name(const char* kind, std::size_t number) { return kind + std::to_string(number); }

NamedInput Named(const PlanInput& input) {
  NamedInput named;
  for (std::size_t w = 0; w < input.workers.size(); ++w) {
    NamedWorker worker{Name("w", w), input.workers[w].weight};
    if (input.workers[w].groups) {
      worker.handlers.emplace();
      for (const GroupIndex group : *input.workers[w].groups) worker.handlers->push_back(Name("g", group));
    }
    if (input.workers[w].slices) {
      worker.slices.emplace();
      for (const SliceIndex slice : *input.workers[w].slices) worker.slices->push_back(Name("s", slice));
    }
    named.workers.push_back(worker);
  }
  for (std::size_t s = 0; s < input.slices.size(); ++s) {
    named.slices.push_back({Name("s", s), Name("g", input.slices[s].group)});
    if (input.slices[s].owner != kNobody) named.current[Name("s", s)] = Name("w", input.slices[s].owner);
  }
  return named;
}

TEST(NamedInputTest, TheOrderInWhichNamesWereGivenChangesNothing) {
  EXPECT_TRUE(rc::check([] {
    const NamedInput named = Named(*AnyCase({}));
    NamedInput turned = named;
    std::reverse(turned.workers.begin(), turned.workers.end());
    std::rotate(turned.slices.begin(), turned.slices.begin() + static_cast<long>(turned.slices.size() / 3),
                turned.slices.end());
    for (NamedWorker& worker : turned.workers) {
      if (worker.slices) std::reverse(worker.slices->begin(), worker.slices->end());
      if (worker.handlers) std::reverse(worker.handlers->begin(), worker.handlers->end());
    }
    RC_ASSERT(NamedPlan(named) == NamedPlan(turned));
  }));
}

TEST(NamedInputTest, AWorkerAcceptsAGroupIfItAcceptsAllItsHandlers) {
  NamedInput named;
  named.workers = {{"all"}, {"both", 1, {{"a", "b"}}}, {"half", 1, {{"a"}}}, {"none", 1, {{}}}};
  named.groups = {{"pair", {"a", "b"}}, {"empty", {}}};
  named.slices = {{"s1", "pair"}, {"s2", "a"}, {"s3", "empty"}};
  const NumberedInput numbered = Number(named);
  ASSERT_THAT(numbered.workers, ElementsAre("all", "both", "half", "none"));
  EXPECT_EQ(numbered.input.workers[0].groups, std::nullopt);
  EXPECT_THAT(numbered.input.workers[1].groups, Optional(ElementsAre(0, 1, 2)));  // a, empty, pair
  EXPECT_THAT(numbered.input.workers[2].groups, Optional(ElementsAre(0, 1)));
  EXPECT_THAT(numbered.input.workers[3].groups, Optional(ElementsAre(1)));
}

TEST(NamedInputTest, WhoIsGoneIsOfNoAccount) {
  NamedInput named;
  named.workers = {{"w1", 1, std::nullopt, {{"gone", "s1"}}}};
  named.slices = {{"s1", "g"}, {"s2", "g"}};
  named.current = {{"s1", "dead"}, {"retired", "w1"}};
  const NumberedInput numbered = Number(named);
  EXPECT_EQ(numbered.input.slices[0].owner, kNobody);
  EXPECT_THAT(numbered.input.workers[0].slices, Optional(ElementsAre(0)));
}

}  // namespace
}  // namespace millrace::engine
