#include "coordinator/app/cluster/cluster_pause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using testing::AllOf;
using testing::HasSubstr;

PauseTargets KnownPauses() {
  PauseTargets known;
  known.shards = {"main", "east"};
  known.tables["main"] = {{"tasks", 64, {70}}};
  known.types = {"noop", "send_mail"};
  known.workers = {"w1", "w2"};
  return known;
}

std::string Refusal(const std::string& name, const PauseTargets& known = KnownPauses()) {
  const Status checked = CheckPauseTargets({name}, known);
  return checked ? "accepted" : checked.error().message;
}

TEST(PauseTargetsTest, WhatTheClusterKnowsIsAccepted) {
  for (const char* name :
       {"cluster", "shard:east", "handler:send_mail", "slice:main:tasks:63", "worker:w2"}) {
    EXPECT_EQ(Refusal(name), "accepted") << name;
  }
  EXPECT_EQ(Refusal("slice:main:tasks:70"), "accepted");  // rows stand there
}

TEST(PauseTargetsTest, ASlipOfThePenIsRefusedWithTheNearestName) {
  EXPECT_THAT(Refusal("handler:send_mial"),
              AllOf(HasSubstr("did you mean 'send_mail'?"), HasSubstr("--force")));
  EXPECT_THAT(Refusal("shard:eats"), HasSubstr("did you mean 'east'?"));
  EXPECT_THAT(Refusal("worker:w3"), HasSubstr("there is no worker 'w3'"));
  EXPECT_THAT(Refusal("slice:eats:tasks:1"), HasSubstr("did you mean 'east'?"));
  EXPECT_THAT(Refusal("slice:main:taks:1"), HasSubstr("did you mean 'tasks'?"));
  EXPECT_THAT(Refusal("slice:main:tasks:64"), HasSubstr("main/tasks has the slices 0 to 63"));
}

TEST(PauseTargetsTest, WhereNothingIsNearWhatThereIsIsNamed) {
  EXPECT_THAT(Refusal("handler:zzzzz"), HasSubstr("there are noop, send_mail"));
}

TEST(PauseTargetsTest, WhatIsNotKnownIsNotHeldAgainstAName) {
  PauseTargets known = KnownPauses();
  known.types.reset();
  EXPECT_EQ(Refusal("handler:zzzzz", known), "accepted");
  EXPECT_EQ(Refusal("slice:east:any:5", known), "accepted");  // that shard could not be asked
  known.shards.reset();
  EXPECT_EQ(Refusal("shard:west", known), "accepted");
}

TEST(PauseTargetsTest, WhoPausedItSinceWhenAndWhyIsInJson) {
  const WallTime since = ParseTime("2026-11-20T18:00:00Z").value();
  const PauseRecord pause{"handler:noop", "ann@h", since, "it is down"};
  EXPECT_EQ(PauseJson(pause).dump(),
            R"({"what":"handler:noop","by":"ann@h","since":"2026-11-20T18:00:00Z","reason":"it is down"})");
  // A node that somebody made by hand says no more than that it is there.
  EXPECT_EQ(PauseJson({.what = "cluster", .actor = {}, .since = {}}).dump(),
            R"({"what":"cluster","by":null,"since":null,"reason":null})");
}

TEST(PauseTargetsTest, OneUnknownNameIsEnough) {
  EXPECT_FALSE(CheckPauseTargets({"cluster", "shard:none"}, KnownPauses()));
}

}  // namespace
}  // namespace millrace::engine
