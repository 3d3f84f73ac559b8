// How long a leader takes to decide: from what it has read to the assignments that it wants, names and all.
// 100 tables of 1,000 slices, 1,000 workers of which ten leave.
#include <benchmark/benchmark.h>

#include <numeric>

#include "coordinator/leader/plan.h"
#include "coordinator/leader/plan_writer.h"

namespace millrace::engine {
namespace {

constexpr std::uint32_t kTables = 100;
constexpr std::uint32_t kSlicesEach = 1000;
constexpr std::uint32_t kWorkers = 1000;
constexpr std::uint32_t kLeavers = 10;
constexpr std::uint32_t kTypes = 50;

std::string Name(const char* prefix, std::uint32_t number) {
  const std::string digits = std::to_string(number);
  return prefix + std::string(4 - digits.size(), '0') + digits;
}

// Every worker has the same plugins. Some are limited to half of the load-balance numbers, each to other
// ones.
PlanState Cluster(std::uint32_t limited) {
  PlanState state;
  for (std::uint32_t t = 0; t < kTables; ++t)
    state.catalog.tables.push_back({"main", ParseTableName(Name("tasks_", t)).value(), kSlicesEach});
  for (std::uint32_t w = 0; w < kWorkers; ++w) {
    const std::string id = Name("worker-", w);
    state.roles[id] = MemberRole::Active;
    WorkerDocument& worker = state.workers[id];
    worker.limits.handlers.emplace();
    for (std::uint32_t type = 0; type < kTypes; ++type)
      worker.limits.handlers->push_back(Name("type_", type));
    if (w >= limited) continue;
    worker.limits.load_balance.emplace(kSlicesEach / 2);
    std::iota(worker.limits.load_balance->begin(), worker.limits.load_balance->end(),
              w * kSlicesEach / 2 / limited);
  }
  return state;
}

// Balanced, and then some are gone.
PlanState WithLeavers(PlanState state) {
  const PlanDecision decision = DecidePlan(state, true);
  for (const auto& [id, slices] : decision.wanted) state.assigned[id] = {1, 1, slices, decision.groups};
  for (std::uint32_t w = 0; w < kLeavers; ++w) {
    const std::string id = Name("worker-", w * kWorkers / kLeavers);
    state.workers.erase(id);
    state.roles[id] = MemberRole::Gone;
  }
  return state;
}

void Measure(const char* name, const PlanState& state) {
  benchmark::RegisterBenchmark(name, [state](benchmark::State& run) {
    std::size_t moves = 0;
    for (auto step : run) moves = DecidePlan(state, true).moves.size();
    run.counters["moves"] = static_cast<double>(moves);
  })->Unit(benchmark::kMillisecond);
}

StoredAssignments Stored(const PlanState& state) {
  StoredAssignments stored;
  for (const auto& [id, document] : state.assigned)
    stored[id].push_back({"/assign/" + id, std::make_shared<const AssignDocument>(document)});
  return stored;
}

// What a leader does once it has read what is new: put the pages together, decide, write one multi.
void MeasureTurn(const char* name, const PlanState& before) {
  benchmark::RegisterBenchmark(name, [before, stored = Stored(before)](benchmark::State& run) {
    std::size_t writes = 0;
    for (auto step : run) {
      PlanState state = before;
      for (const auto& [id, pages] : stored) state.assigned[id] = *Together(pages);
      std::vector<SliceMove> moved;
      const auto decision = std::make_shared<const PlanDecision>(DecidePlan(state, true));
      writes = PlanWriter(2, {}, decision, stored).Next(moved).size();
    }
    run.counters["writes"] = static_cast<double>(writes);
  })->Unit(benchmark::kMillisecond);
}

const bool kDecisionsRegistered = [] {
  Measure("decision, unlimited, first placement", Cluster(0));
  Measure("decision, unlimited, ten leave", WithLeavers(Cluster(0)));
  Measure("decision, 200 with limits of their own, first placement", Cluster(200));
  Measure("decision, 200 with limits of their own, ten leave", WithLeavers(Cluster(200)));
  MeasureTurn("turn, unlimited, first placement", Cluster(0));
  MeasureTurn("turn, unlimited, ten leave", WithLeavers(Cluster(0)));
  return true;
}();

}  // namespace
}  // namespace millrace::engine
