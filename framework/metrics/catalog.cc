// Made by scripts/monitoring from conf/monitoring/metrics.json: change that.
// clang-format off
#include "framework/metrics/catalog.h"

#include <algorithm>
#include <array>

namespace millrace::engine {
namespace {

constexpr auto kTaskBounds = std::to_array<std::int64_t>(
    {5000, 10000, 25000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000, 60000000, 300000000});
constexpr auto kQueryBounds = std::to_array<std::int64_t>(
    {1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000});

constexpr auto kMetrics = std::to_array<MetricSpec>({
    {"millrace_breaker_open", MetricSpec::Kind::Gauge,
     "Whether this worker starts nothing but probes of this type, since its breaker is open. Told of types that have one.", {}, false},
    {"millrace_build_info", MetricSpec::Kind::Gauge,
     "1; the label says which version of Millrace this process runs.", {}, false},
    {"millrace_claims_refused_total", MetricSpec::Kind::Counter,
     "Claims that were refused as those of a dead life.", {}, false},
    {"millrace_claims_short_total", MetricSpec::Kind::Counter,
     "Claims that got fewer tasks than were seen: others were first, or had them locked.", {}, false},
    {"millrace_config_refused", MetricSpec::Kind::Gauge,
     "Parts of the configuration that are not in force in this process.", {}, false},
    {"millrace_incarnations_marked_dead_total", MetricSpec::Kind::Counter,
     "Lives of other workers that this one marked dead, since their beats stood still.", {}, false},
    {"millrace_lane_busy", MetricSpec::Kind::Gauge,
     "Threads that have tasks of this type in hand.", {}, false},
    {"millrace_lane_threads", MetricSpec::Kind::Gauge,
     "Threads that run tasks of this type; handler=\"shared\": those of the lane that all types share (engine.queues).", {}, false},
    {"millrace_leader", MetricSpec::Kind::Gauge,
     "Whether this candidate leads the cluster.", {}, false},
    {"millrace_oldest_due_seconds", MetricSpec::Kind::Gauge,
     "How long the oldest due task has been due. Told by the leader alone.", {}, true},
    {"millrace_permits_overrun_total", MetricSpec::Kind::Counter,
     "Of the tasks that held a permit, those that may have run beside another: their process was stopped for longer than its lease, or their handler ignored the request to stop.", {}, false},
    {"millrace_permits_withdrawn_total", MetricSpec::Kind::Counter,
     "Running tasks of a type with a limit of a few that were told to stop, since the beat that holds their permit was late or over: an outage of the home of permits, mostly.", {}, false},
    {"millrace_plan_seconds", MetricSpec::Kind::Histogram,
     "How long the leader took to decide a plan.", kQueryBounds, false},
    {"millrace_purge_lag_seconds", MetricSpec::Kind::Gauge,
     "Time since the walk over what need not be kept any longer came to its end; it begins each hour. Told by the leader alone.", {}, false},
    {"millrace_query_seconds", MetricSpec::Kind::Histogram,
     "How long the strands of a shard waited for their statements, by what they asked for.", kQueryBounds, false},
    {"millrace_queue_busy", MetricSpec::Kind::Gauge,
     "Threads that have tasks of this queue in hand.", {}, false},
    {"millrace_queue_tasks", MetricSpec::Kind::Gauge,
     "Claimed tasks that wait for a thread, by the queue that they stand in, where engine.queues is not by handler.", {}, false},
    {"millrace_schedule_late_seconds", MetricSpec::Kind::Gauge,
     "By how much the latest schedule of the shard is late; 0 where none is by more than a minute. Told by the leader alone.", {}, false},
    {"millrace_settles_refused_total", MetricSpec::Kind::Counter,
     "Ends of attempts that the database refused, since the attempt was no longer this worker's.", {}, false},
    {"millrace_shard_up", MetricSpec::Kind::Gauge,
     "Whether this worker's last look at the shard succeeded.", {}, false},
    {"millrace_slice_moves_total", MetricSpec::Kind::Counter,
     "Slices that this process as leader gave to another worker: new (nobody had it), orphaned (its worker went), balance.", {}, false},
    {"millrace_slices", MetricSpec::Kind::Gauge,
     "Slices of the plan: owned by a worker that is there, or unowned. Told by the leader alone.", {}, false},
    {"millrace_task_run_seconds", MetricSpec::Kind::Histogram,
     "How long handlers ran, from the first call of an attempt to its return: succeeded, failed (whether it is tried again or not), other.", kTaskBounds, false},
    {"millrace_task_wait_seconds", MetricSpec::Kind::Histogram,
     "From the moment a task was due to its handler's first line, by the clock of its database.", kTaskBounds, false},
    {"millrace_tasks_adopted_total", MetricSpec::Kind::Counter,
     "Tasks of this worker's whose claim's reply was lost, found again in the table.", {}, false},
    {"millrace_tasks_claimed_total", MetricSpec::Kind::Counter,
     "Attempts that this worker has claimed.", {}, false},
    {"millrace_tasks_failed", MetricSpec::Kind::Gauge,
     "Tasks in the failed pool. Told by the leader alone.", {}, false},
    {"millrace_tasks_quarantined", MetricSpec::Kind::Gauge,
     "Of the newest tasks in the failed pool, those whose runs have killed workers. Told by the leader alone.", {}, false},
    {"millrace_tasks_rescued_total", MetricSpec::Kind::Counter,
     "Tasks that dead workers left running, set waiting again by this one.", {}, false},
    {"millrace_tasks_settled_total", MetricSpec::Kind::Counter,
     "Attempts that have ended: succeeded, cancelled (or skipped), failed (to the failed pool), retried (failed, to be tried again), held (failed, to wait for somebody), returned (snoozed or given back).", {}, false},
    {"millrace_tasks_waiting", MetricSpec::Kind::Gauge,
     "Tasks that wait or run, exact to 10000 for each shard and type. Told by the leader alone.", {}, false},
    {"millrace_transaction_retries_total", MetricSpec::Kind::Counter,
     "Statements and transactions that failed and are tried again, by what was wrong.", {}, false},
    {"millrace_workers", MetricSpec::Kind::Gauge,
     "Workers that are registered in the cluster. Told by the leader alone.", {}, false},
    {"millrace_zookeeper_connected", MetricSpec::Kind::Gauge,
     "Whether this process of a cluster has its session with ZooKeeper.", {}, false},
});

}  // namespace

std::span<const MetricSpec> AllMetrics() { return kMetrics; }

const MetricSpec* FindMetric(std::string_view name) {
  const auto found = std::lower_bound(
      kMetrics.begin(), kMetrics.end(), name,
      [](const MetricSpec& spec, std::string_view wanted) { return spec.name < wanted; });
  return found != kMetrics.end() && found->name == name ? &*found : nullptr;
}

}  // namespace millrace::engine
