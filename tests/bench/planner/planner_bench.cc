// How long a plan takes. 100,000 slices on 1,000 workers, unless a name says otherwise; each plan starts from
// a balanced one.
#include <benchmark/benchmark.h>

#include <random>

#include "coordinator/planner/planner.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kWorkersInAll = 1000;
constexpr std::size_t kSlices = 100'000;
constexpr std::uint64_t kSeed = 7;

PlanInput Unconstrained() {
  PlanInput input;
  input.workers.resize(kWorkersInAll);
  input.slices.resize(kSlices);
  return input;
}

PlanInput Weighted() {
  PlanInput input = Unconstrained();
  std::mt19937_64 random(kSeed);
  for (PlanWorker& worker : input.workers) worker.weight = 1 + random() % 1000;
  return input;
}

// Every worker accepts each of the groups with a probability of so many percent.
PlanInput Grouped(std::uint32_t groups, std::uint32_t percent) {
  PlanInput input = Unconstrained();
  std::mt19937_64 random(kSeed);
  for (PlanWorker& worker : input.workers) {
    worker.groups.emplace();
    for (GroupIndex group = 0; group < groups; ++group) {
      if (random() % 100 < percent) worker.groups->push_back(group);
    }
  }
  for (std::size_t s = 0; s < kSlices; ++s) input.slices[s].group = static_cast<GroupIndex>(s % groups);
  return input;
}

// The groups have slices in very different numbers, and each is accepted by a few workers: loads have to
// differ.
PlanInput Lopsided() {
  PlanInput input = Grouped(20, 5);
  std::mt19937_64 random(kSeed);
  for (PlanSlice& slice : input.slices) {
    slice.group = static_cast<GroupIndex>(std::min(random() % 20, random() % 20));
  }
  return input;
}

// Load-balance numbers: every worker accepts the slices from one number to another.
PlanInput Ranges() {
  PlanInput input = Unconstrained();
  std::mt19937_64 random(kSeed);
  for (PlanWorker& worker : input.workers) {
    worker.slices.emplace();
    const SliceIndex first = random() % 64;
    const SliceIndex last = first + random() % (64 - first);
    for (SliceIndex s = 0; s < kSlices; ++s) {
      if (s % 64 >= first && s % 64 <= last) worker.slices->push_back(s);
    }
  }
  return input;
}

PlanInput Balanced(PlanInput input) {
  const Plan plan = SolvePlan(input);
  for (std::size_t s = 0; s < plan.owners.size(); ++s) input.slices[s].owner = plan.owners[s];
  return input;
}

PlanInput WithoutLast(PlanInput input, std::size_t leavers) {
  input.workers.resize(input.workers.size() - leavers);
  for (PlanSlice& slice : input.slices) {
    if (slice.owner != kNobody && slice.owner >= input.workers.size()) slice.owner = kNobody;
  }
  return input;
}

PlanInput Leave(const PlanInput& input, std::size_t leavers) { return WithoutLast(Balanced(input), leavers); }

PlanInput Join(const PlanInput& input, std::size_t joiners) {
  PlanInput joined = Balanced(WithoutLast(input, joiners));
  joined.workers.insert(joined.workers.end(), input.workers.end() - static_cast<long>(joiners),
                        input.workers.end());
  return joined;
}

PlanInput Garbage(PlanInput input) {
  std::mt19937_64 random(kSeed);
  for (PlanSlice& slice : input.slices) slice.owner = static_cast<WorkerIndex>(random() % kWorkersInAll);
  return input;
}

void Solve(benchmark::State& state, const PlanInput& input) {
  std::size_t moves = 0;
  while (state.KeepRunning()) moves = SolvePlan(input).moves.size();
  state.counters["moves"] = static_cast<double>(moves);
}

void Measure(const char* name, const PlanInput& input) {
  benchmark::RegisterBenchmark(name, [input](benchmark::State& state) {
    Solve(state, input);
  })->Unit(benchmark::kMillisecond);
}

const bool kPlansRegistered = [] {
  Measure("unconstrained, first placement", Unconstrained());
  Measure("unconstrained, one joins", Join(Unconstrained(), 1));
  Measure("unconstrained, one leaves", Leave(Unconstrained(), 1));
  Measure("unconstrained, from random owners", Garbage(Unconstrained()));
  Measure("weighted, one joins", Join(Weighted(), 1));
  Measure("weighted, one leaves", Leave(Weighted(), 1));
  Measure("20 groups, 60 % accepted, first placement", Grouped(20, 60));
  Measure("20 groups, 60 % accepted, one leaves", Leave(Grouped(20, 60), 1));
  Measure("20 groups, 60 % accepted, ten leave", Leave(Grouped(20, 60), 10));
  Measure("20 groups, 60 % accepted, ten join", Join(Grouped(20, 60), 10));
  Measure("20 groups, 60 % accepted, from random owners", Garbage(Grouped(20, 60)));
  Measure("20 lopsided groups, 5 % accepted, ten leave", Leave(Lopsided(), 10));
  Measure("64 load-balance numbers in ranges, ten leave", Leave(Ranges(), 10));
  return true;
}();

}  // namespace
}  // namespace millrace::engine
