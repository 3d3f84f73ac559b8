// A registry as a large installation fills it, for those who look at its text's size and time: two shards
// with 512 tables each, 200 task types, all of which have succeeded and failed. Tables have no series.
#pragma once

#include "framework/mill/mill_counters.h"

namespace millrace::engine {

class FullRegistry {
 public:
  FullRegistry() {
    for (const char* shard : {"shard_01", "shard_02"}) {
      for (int i = 0; i < 200; ++i) Fill(shard, "handler_" + std::to_string(100 + i));
      for (const char* kind : {"due", "scan", "claim", "settle", "tend", "beat"}) {
        registry.GetHistogram("millrace_query_seconds", {{"shard", shard}, {"kind", kind}})
            .Observe(Micros(1));
      }
    }
    reading_ = registry.OnText([](Gauges& gauges) {
      for (const char* shard : {"shard_01", "shard_02"}) {
        for (int i = 0; i < 200; ++i) {
          const MetricLabels labels{{"shard", shard}, {"handler", "handler_" + std::to_string(100 + i)}};
          gauges.Set("millrace_tasks_waiting", labels, 10'000);
          gauges.Set("millrace_oldest_due_seconds", labels, 86'400.123456);
          gauges.Set("millrace_tasks_failed", labels, 1'234'567);
          gauges.Set("millrace_lane_threads", {{"handler", labels.at("handler")}}, 16);
          gauges.Set("millrace_lane_busy", {{"handler", labels.at("handler")}}, 16);
        }
      }
    });
  }

  Registry registry;

 private:
  void Fill(const std::string& shard, const std::string& handler) {
    TypeCounters& type = counters_.Of(shard, handler);
    for (Counter* counter : {&type.claimed, &type.succeeded, &type.cancelled, &type.failed, &type.retried,
                             &type.held, &type.returned}) {
      counter->Add(123'456'789);
    }
    for (Histogram* histogram : {&type.wait, &type.ran_well, &type.ran_badly}) {
      for (int n = 0; n < 12'345; ++n) histogram->Observe(Micros(n * 1'000 + 7));
    }
  }

  MillCounters counters_{registry};
  Registry::Reading reading_;
};

}  // namespace millrace::engine
