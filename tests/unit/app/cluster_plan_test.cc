#include "coordinator/app/cluster/cluster_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

std::string ProblemIn(const std::string& text) {
  const auto state = ReadPlanInput(text, "c.json");
  return state ? "" : state.error().message;
}

TEST(ReadPlanInputTest, ReadsEveryPart) {
  const auto state = ReadPlanInput(R"({
    "workers": [{"id":"w1","weight":3,"handlers":["a","b"],"slices":["s1"]},
                {"id":"w2","weight":1,"handlers":null,"slices":null}],  // a comment
    "slices": [{"id":"s1","group":"g"},{"id":"s2","group":"a"}],
    "groups": {"g":["a","b"]},
    "current": {"s1":"w2","s2":null}})",
                                   "c.json");
  ASSERT_TRUE(state) << state.error().message;
  ASSERT_EQ(state->workers.size(), 2u);
  EXPECT_EQ(state->workers[0].id, "w1");
  EXPECT_EQ(state->workers[0].weight, 3u);
  EXPECT_THAT(state->workers[0].handlers, Optional(ElementsAre("a", "b")));
  EXPECT_THAT(state->workers[0].slices, Optional(ElementsAre("s1")));
  EXPECT_EQ(state->workers[1].handlers, std::nullopt);
  EXPECT_EQ(state->workers[1].slices, std::nullopt);
  ASSERT_EQ(state->slices.size(), 2u);
  EXPECT_EQ(state->slices[0].id, "s1");
  EXPECT_EQ(state->slices[0].group, "g");
  EXPECT_THAT(state->groups, ElementsAre(Pair("g", ElementsAre("a", "b"))));
  EXPECT_THAT(state->current, UnorderedElementsAre(Pair("s1", "w2")));
}

TEST(ReadPlanInputTest, WhatMayBeLeftOutMeansNoLimit) {
  const auto state = ReadPlanInput(R"({"workers":[{"id":"w"}],"slices":[]})", "c.json");
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->workers[0].weight, 1u);
  EXPECT_EQ(state->workers[0].handlers, std::nullopt);
  EXPECT_EQ(state->workers[0].slices, std::nullopt);
  EXPECT_THAT(state->current, IsEmpty());
}

struct Bad {
  const char* text;
  const char* says;
};

TEST(ReadPlanInputTest, SaysWhatIsWrongAndWhere) {
  const Bad kTable[] = {
      {"", "c.json:1: not valid JSON"},
      {"[]", "c.json:1: this must be an object"},
      {R"({"slices":[]})", "c.json:1: workers: missing"},
      {"{\"workers\":[],\n\"slices\":{}}", "c.json:2: slices: this must be a list"},
      {R"({"workers":[{"weight":1}],"slices":[]})", "workers.0.id: missing"},
      {R"({"workers":[{"id":""}],"slices":[]})", "workers.0.id: the text is empty"},
      {R"({"workers":[{"id":"w","weight":0}],"slices":[]})", "workers.0.weight: 0 is out of range"},
      {R"({"workers":[{"id":"w","weight":1.5}],"slices":[]})",
       "workers.0.weight: this must be a whole number"},
      {R"({"workers":[{"id":"w","handlers":"a"}],"slices":[]})", "workers.0.handlers: this must be a list"},
      {R"({"workers":[{"id":"w","slices":[7]}],"slices":[]})", "workers.0.slices.0: this must be a text"},
      {R"({"workers":[{"id":"w","wieght":1}],"slices":[]})", "unknown key (did you mean 'weight'?)"},
      {R"({"workers":[{"id":"w"},{"id":"w"}],"slices":[]})", "workers.1.id: 'w' stands here for the second"},
      {R"({"workers":[],"slices":[{"id":"s"}]})", "slices.0.group: missing"},
      {R"({"workers":[],"slices":[{"id":"s","group":"g"},{"id":"s","group":"h"}]})",
       "slices.1.id: 's' stands"},
      {R"({"workers":[],"slices":[],"groups":{"g":"a"}})", "groups.g: this must be a list"},
      {R"({"workers":[],"slices":[],"current":{"s":1}})", "current.s: this must be the id of a worker"},
      {R"({"workers":[],"slices":[],"current":{"s":"w","s":"w"}})", "current.s: this key stands here"},
  };
  for (const Bad& bad : kTable) EXPECT_THAT(ProblemIn(bad.text), HasSubstr(bad.says)) << bad.text;
}

TEST(ReadPlanInputTest, OfManyProblemsItShowsTheFirst) {
  std::string slices = "7";
  for (int i = 1; i < 50; ++i) slices += ",7";
  const std::string problem =
      ProblemIn("{\"workers\":[{\"id\":\"w\",\"slices\":[" + slices + "]}],\"slices\":[]}");
  EXPECT_EQ(std::count(problem.begin(), problem.end(), '\n'), 10);
  EXPECT_THAT(problem, HasSubstr("\nand 40 more"));
}

}  // namespace
}  // namespace millrace::engine
