// What a worker counts of its tasks, and how large that may become.
#include "framework/mill/mill_counters.h"

#include <gmock/gmock.h>

#include "tests/support/full_registry.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::Not;

Settlement To(Settlement::To to, bool failed_attempt = false) {
  Settlement settlement;
  settlement.to = to;
  settlement.failed_attempt = failed_attempt;
  return settlement;
}

class MillCountersTest : public testing::Test {
 protected:
  Registry registry_;
  MillCounters counters_{registry_};
};

TEST_F(MillCountersTest, EachEndIsCountedOnceForItsTypeAndInSum) {
  TypeCounters& noop = counters_.Of("main", "noop");
  const AttemptTimes ran{seconds(1), seconds(2)};
  counters_.Count(noop, To(Settlement::To::Succeeded), ran);
  counters_.Count(noop, To(Settlement::To::Cancelled), {});
  counters_.Count(noop, To(Settlement::To::Failed, true), ran);
  counters_.Count(noop, To(Settlement::To::Waiting, true), ran);
  counters_.Count(noop, To(Settlement::To::Held, true), {});
  counters_.Count(noop, To(Settlement::To::Waiting), {seconds(1), {}});
  for (const char* outcome : {"succeeded", "cancelled", "failed", "retried", "held", "returned"}) {
    const Registry::Labels labels{{"handler", "noop"}, {"outcome", outcome}};
    EXPECT_EQ(registry_.GetCounter("millrace_tasks_settled_total", labels).Value(), 1U) << outcome;
  }
  counters_.Count(noop, To(Settlement::To::Held), {});
  EXPECT_EQ(noop.held.Value(), 1U) << "one that has not failed is given back";
  EXPECT_EQ(counters_.succeeded.Value() + counters_.failed.Value() + counters_.retried.Value(), 3U);
  EXPECT_EQ(counters_.held.Value(), 1U);
  EXPECT_EQ(noop.wait.Count(), 4U);
  EXPECT_EQ(noop.wait.Sum(), seconds(4));
  EXPECT_EQ(noop.ran_well.Count(), 1U);
  EXPECT_EQ(noop.ran_badly.Count(), 2U);
  EXPECT_EQ(noop.ran_badly.Sum(), seconds(4));
  EXPECT_EQ(noop.ran_otherwise.Count(), 0U);
  EXPECT_THAT(registry_.Text(), Not(HasSubstr("outcome=\"other\"")));
}

TEST_F(MillCountersTest, ATypeIsTheSameInEveryShardButForWhatIsTheShards) {
  TypeCounters& here = counters_.Of("main", "noop");
  TypeCounters& there = counters_.Of("other", "noop");
  EXPECT_EQ(&here, &counters_.Of("main", "noop"));
  EXPECT_EQ(&here.succeeded, &there.succeeded);
  EXPECT_EQ(&here.wait, &there.wait);
  EXPECT_NE(&here.claimed, &there.claimed);
}

TEST(ScrapeTest, ManyTablesAndTypesAreLessThanAMegabyte) {
  const FullRegistry full;
  const std::string text = full.registry.Text();
  EXPECT_THAT(text, HasSubstr("millrace_tasks_claimed_total{handler=\"handler_299\",shard=\"shard_02\"}"));
  EXPECT_GT(text.size(), 500'000U);  // it is as full as it says
  EXPECT_LT(text.size(), 1'000'000U);
}

}  // namespace
}  // namespace millrace::engine
