// The registry's text: what it says, that promtool takes it, and that no row can make it large.
#include "framework/metrics/registry.h"

#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <thread>

#include "framework/metrics/catalog.h"

namespace millrace::engine {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kClaimed = "millrace_tasks_claimed_total";
constexpr const char* kWait = "millrace_task_wait_seconds";
constexpr const char* kWaiting = "millrace_tasks_waiting";
constexpr const char* kOldest = "millrace_oldest_due_seconds";

std::size_t Lines(const std::string& text, const std::string& beginning) {
  std::size_t lines = 0;
  for (std::size_t at = text.find(beginning); at != std::string::npos; at = text.find(beginning, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') ++lines;
  }
  return lines;
}

TEST(RegistryTest, ItsTextHasTheCatalogsWordsAndKindsInOrder) {
  Registry registry;
  registry.GetCounter(kClaimed, {{"shard", "main"}, {"handler", "noop"}}).Add(3);
  registry.GetCounter("millrace_settles_refused_total");
  const Registry::Reading reading =
      registry.OnText([](Gauges& gauges) { gauges.Set("millrace_leader", {}, 1); });
  EXPECT_EQ(registry.Text(),
            "# HELP millrace_leader Whether this candidate leads the cluster.\n"
            "# TYPE millrace_leader gauge\n"
            "millrace_leader 1\n"
            "# HELP millrace_settles_refused_total Ends of attempts that the database refused, since the "
            "attempt was no longer this worker's.\n"
            "# TYPE millrace_settles_refused_total counter\n"
            "millrace_settles_refused_total 0\n"
            "# HELP millrace_tasks_claimed_total Attempts that this worker has claimed.\n"
            "# TYPE millrace_tasks_claimed_total counter\n"
            "millrace_tasks_claimed_total{handler=\"noop\",shard=\"main\"} 3\n");
}

TEST(RegistryTest, AHistogramsBucketsAreOfSecondsAndAddUp) {
  Registry registry;
  Histogram& wait = registry.GetHistogram(kWait, {{"handler", "noop"}});
  wait.Observe(Micros(5'000));  // on the bound
  wait.Observe(Micros(5'001));
  wait.Observe(Micros(-7));  // a clock that was set: at once
  wait.Observe(std::chrono::hours(1));
  EXPECT_EQ(wait.Count(), 4U);
  const std::string text = registry.Text();
  EXPECT_THAT(text, HasSubstr("millrace_task_wait_seconds_bucket{handler=\"noop\",le=\"0.005\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("millrace_task_wait_seconds_bucket{handler=\"noop\",le=\"0.01\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("millrace_task_wait_seconds_bucket{handler=\"noop\",le=\"300\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("millrace_task_wait_seconds_bucket{handler=\"noop\",le=\"+Inf\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("millrace_task_wait_seconds_count{handler=\"noop\"} 4\n"));
  EXPECT_THAT(text, HasSubstr("millrace_task_wait_seconds_sum{handler=\"noop\"} 3600.010001\n"));
}

TEST(RegistryTest, ALabelsValueIsEscaped) {
  Registry registry;
  registry.GetCounter(kClaimed, {{"shard", "a\"b\\c\nd"}, {"handler", "noop"}}).Add();
  EXPECT_THAT(registry.Text(), HasSubstr("{handler=\"noop\",shard=\"a\\\"b\\\\c\\nd\"} 1\n"));
}

TEST(RegistryTest, NoRowMakesSeriesWithoutBound) {
  Registry registry;
  for (int i = 0; i < 1000; ++i) {
    registry.GetCounter(kClaimed, {{"shard", "main"}, {"handler", "h" + std::to_string(i)}}).Add();
  }
  const Registry::Reading reading = registry.OnText([](Gauges& gauges) {
    for (int i = 0; i < 1000; ++i) {
      const MetricLabels labels{{"shard", "main"}, {"handler", "h" + std::to_string(i)}};
      gauges.Set(kWaiting, labels, 2);
      gauges.Set(kOldest, labels, i);
    }
  });
  const std::string text = registry.Text();
  const std::size_t most = Registry::kMostHandlers + 1;
  EXPECT_EQ(Lines(text, "millrace_tasks_claimed_total{"), most);
  EXPECT_EQ(Lines(text, "millrace_tasks_waiting{"), most);
  EXPECT_THAT(text, HasSubstr("millrace_tasks_claimed_total{handler=\"h249\",shard=\"main\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("\"h250\"")));
  EXPECT_THAT(text, HasSubstr("millrace_tasks_claimed_total{handler=\"other\",shard=\"main\"} 750\n"));
  EXPECT_THAT(text, HasSubstr("millrace_tasks_waiting{handler=\"other\",shard=\"main\"} 1500\n"));
  EXPECT_THAT(text, HasSubstr("millrace_oldest_due_seconds{handler=\"other\",shard=\"main\"} 999\n"));
}

TEST(RegistryTest, AReadingEndsWithWhatItReads) {
  Registry registry;
  {
    Registry::Reading kept;
    {
      Registry::Reading reading =
          registry.OnText([](Gauges& gauges) { gauges.Set("millrace_leader", {}, 1); });
      kept = std::move(reading);
    }
    EXPECT_THAT(registry.Text(), HasSubstr("millrace_leader 1"));
  }
  EXPECT_EQ(registry.Text(), "");
}

TEST(RegistryTest, NothingIsLostWhereManyThreadsAdd) {
  Registry registry;
  constexpr int kEach = 10'000;
  registry.GetCounter(kClaimed);
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&registry] {
        Counter& claimed = registry.GetCounter(kClaimed);
        Histogram& wait = registry.GetHistogram(kWait);
        for (int n = 0; n < kEach; ++n) {
          claimed.Add();
          wait.Observe(Micros(n));
        }
      });
    }
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(registry.Text().empty());
  }
  EXPECT_EQ(registry.GetCounter(kClaimed).Value(), 4U * kEach);
  EXPECT_EQ(registry.GetHistogram(kWait).Count(), 4U * kEach);
}

TEST(CatalogTest, EveryMetricIsFoundByItsName) {
  for (const MetricSpec& spec : AllMetrics()) {
    EXPECT_EQ(FindMetric(spec.name), &spec) << spec.name;
    EXPECT_LE(spec.bounds.size(), Histogram::kMostBounds) << spec.name;
    EXPECT_TRUE(std::is_sorted(spec.bounds.begin(), spec.bounds.end())) << spec.name;
    EXPECT_EQ(spec.bounds.empty(), spec.kind != MetricSpec::Kind::Histogram) << spec.name;
  }
  EXPECT_EQ(FindMetric("millrace_"), nullptr);
  EXPECT_EQ(FindMetric("zzz"), nullptr);
}

TEST(CatalogTest, PromtoolTakesEveryMetric) {
  Registry registry;
  const MetricLabels labels{{"handler", "noop"}, {"shard", "ma\"in"}};
  const Registry::Reading reading = registry.OnText([&labels](Gauges& gauges) {
    for (const MetricSpec& spec : AllMetrics()) {
      if (spec.kind == MetricSpec::Kind::Gauge) gauges.Set(spec.name, labels, 1.5);
    }
  });
  for (const MetricSpec& spec : AllMetrics()) {
    if (spec.kind == MetricSpec::Kind::Counter) registry.GetCounter(spec.name, labels).Add();
    if (spec.kind == MetricSpec::Kind::Histogram) {
      registry.GetHistogram(spec.name, labels).Observe(std::chrono::seconds(2));
    }
  }
  const std::string text = registry.Text();
  FILE* promtool = popen("promtool check metrics", "w");
  ASSERT_NE(promtool, nullptr);
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), promtool), text.size());
  const int status = pclose(promtool);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
}

}  // namespace
}  // namespace millrace::engine
