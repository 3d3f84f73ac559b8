// What there is to do in a simulated cluster, and who takes what of it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "coordinator/leader/plan_writer.h"
#include "framework/base/clock.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

inline constexpr Micros kSimulatedLease = std::chrono::seconds(4);

struct SimulatedWork {
  std::vector<std::string> shards = {"main"};  // sorted
  std::vector<TableName> tables = {"tasks"};   // of every shard; sorted
  std::uint32_t slices = 0;                    // of each table, at the beginning
  std::vector<std::string> handlers;
  std::size_t workers = 3;
  // Workers that take some handlers only; sorted. All others take all.
  std::map<std::string, std::vector<std::string>> limits = {};
  std::map<std::string, std::uint32_t> weights = {};  // of workers whose weight is not 1
  // Whom a task type calls fails for a while. Types that are named here have a breaker.
  struct Outage {
    BootTime from{};
    BootTime to{};
  };
  std::map<std::string, Outage> outages = {};
  std::map<std::string, std::uint32_t> rates = {};  // in a second, of types whose starts have one
  PageBounds bounds = {};                           // the bounds of a page and of a multi

  bool Plain() const { return limits.empty() && weights.empty(); }  // all workers are alike
  std::uint32_t WeightOf(const std::string& worker) const {
    const auto weight = weights.find(worker);
    return weight == weights.end() ? 1 : weight->second;
  }
  bool IsBroken(const std::string& handler, BootTime now) const {
    const auto outage = outages.find(handler);
    return outage != outages.end() && now >= outage->second.from && now < outage->second.to;
  }
  bool Takes(const std::string& worker, const std::string& handler) const {
    const auto limit = limits.find(worker);
    return limit == limits.end() || std::binary_search(limit->second.begin(), limit->second.end(), handler);
  }
};

}  // namespace millrace::engine
