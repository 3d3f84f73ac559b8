// How many slices move when one worker leaves or joins, and how full the fullest is: the planner beside other
// ways to share slices out among equal workers.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "coordinator/planner/planner.h"

namespace millrace::engine {
namespace {

using Owners = std::vector<WorkerIndex>;

// Who owns what among the workers `live`, given who owned it before.
using Strategy = std::function<Owners(const std::vector<WorkerIndex>& live, const Owners& before)>;

Owners ByPlan(const std::vector<WorkerIndex>& live, const Owners& before) {
  std::map<WorkerIndex, WorkerIndex> number;
  for (const WorkerIndex worker : live) number.emplace(worker, static_cast<WorkerIndex>(number.size()));
  PlanInput input;
  input.workers.resize(live.size());
  for (const WorkerIndex owner : before) {
    const auto found = number.find(owner);
    input.slices.push_back({.group = 0, .owner = found == number.end() ? kNobody : found->second});
  }
  Owners owners = SolvePlan(input).owners;
  for (WorkerIndex& owner : owners) owner = live[owner];
  return owners;
}

Owners ByRange(const std::vector<WorkerIndex>& live, const Owners& before) {
  Owners owners(before.size());
  for (std::size_t s = 0; s < owners.size(); ++s) owners[s] = live[s * live.size() / owners.size()];
  return owners;
}

// ElasticJob's average allocation: a range of ⌊n/m⌋ for each worker, and what is left over for the first
// ones.
Owners ByAverage(const std::vector<WorkerIndex>& live, const Owners& before) {
  Owners owners(before.size());
  const std::size_t each = owners.size() / live.size();
  for (std::size_t s = 0; s < owners.size(); ++s) {
    const std::size_t whole = each * live.size();
    owners[s] = live[s < whole ? s / each : s - whole];
  }
  return owners;
}

std::uint64_t Mix(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

Strategy ByRing(std::uint32_t points) {
  return [points](const std::vector<WorkerIndex>& live, const Owners& before) {
    std::vector<std::pair<std::uint64_t, WorkerIndex>> ring;
    for (const WorkerIndex worker : live) {
      for (std::uint64_t p = 0; p < points; ++p) ring.emplace_back(Mix(worker << 12 | p), worker);
    }
    std::sort(ring.begin(), ring.end());
    Owners owners(before.size());
    for (std::size_t s = 0; s < owners.size(); ++s) {
      const auto at = std::lower_bound(ring.begin(), ring.end(), std::pair(Mix(~s), WorkerIndex{0}));
      owners[s] = at == ring.end() ? ring.front().second : at->second;
    }
    return owners;
  };
}

std::size_t Moves(const Owners& before, const Owners& after) {
  std::size_t moves = 0;
  for (std::size_t s = 0; s < before.size(); ++s) moves += before[s] != after[s];
  return moves;
}

double FullestToMean(const Owners& owners, std::size_t workers) {
  std::map<WorkerIndex, std::size_t> loads;
  for (const WorkerIndex owner : owners) ++loads[owner];
  std::size_t fullest = 0;
  for (const auto& [worker, load] : loads) fullest = std::max(fullest, load);
  return static_cast<double>(fullest * workers) / static_cast<double>(owners.size());
}

// One of the workers leaves and joins again; the mean over some of them.
void Compare(const char* name, const Strategy& strategy, std::size_t slices, std::size_t workers) {
  std::vector<WorkerIndex> all;
  for (WorkerIndex worker = 0; worker < workers; ++worker) all.push_back(worker);
  const Owners before = strategy(all, Owners(slices, kNobody));
  constexpr std::size_t kSamples = 10;
  std::size_t left = 0;
  std::size_t joined = 0;
  for (std::size_t sample = 0; sample < kSamples; ++sample) {
    std::vector<WorkerIndex> rest = all;
    rest.erase(rest.begin() + static_cast<long>((2 * sample + 1) * workers / (2 * kSamples)));
    const Owners without = strategy(rest, before);
    left += Moves(before, without);
    joined += Moves(without, strategy(all, without));
  }
  const auto percent = [&](std::size_t moves) {
    return 100.0 * static_cast<double>(moves) / static_cast<double>(kSamples * slices);
  };
  std::printf("%-28s one leaves: %6.2f %%   one joins: %6.2f %%   fullest to mean: %.2f\n", name,
              percent(left), percent(joined), FullestToMean(before, workers));
}

void CompareAll(std::size_t slices, std::size_t workers) {
  std::printf("%zu slices, %zu equal workers; moved of all slices:\n", slices, workers);
  Compare("planner", ByPlan, slices, workers);
  Compare("contiguous ranges", ByRange, slices, workers);
  Compare("ElasticJob average", ByAverage, slices, workers);
  Compare("hash ring, 1 point each", ByRing(1), slices, workers);
  Compare("hash ring, 160 points each", ByRing(160), slices, workers);
}

}  // namespace
}  // namespace millrace::engine

int main(int argc, char** argv) {
  const auto number = [&](int at, std::size_t otherwise) {
    return argc > at ? std::strtoull(argv[at], nullptr, 10) : otherwise;
  };
  const std::size_t workers = number(2, 1000);
  if (workers < 2 || number(1, 100'000) < workers) {
    std::fprintf(stderr, "planner_comparison: give at least as many slices as workers, and two of these\n");
    return 2;
  }
  millrace::engine::CompareAll(number(1, 100'000), workers);
  return 0;
}
