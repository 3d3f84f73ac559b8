// Which slices a worker may have: one rule for the leader's plan, for the worker itself, and for who asks
// why. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/task/slice_name.h"

namespace millrace::engine {

// A limit is a sorted list of what is allowed; nullopt: everything is.
template <class T>
using Limit = std::optional<std::vector<T>>;

template <class T>
bool Allows(const Limit<T>& limit, const T& value) {
  return !limit || std::binary_search(limit->begin(), limit->end(), value);
}

// What both allow.
template <class T>
Limit<T> Both(const Limit<T>& a, const Limit<T>& b) {
  if (!a || !b) return a ? a : b;
  Limit<T> both(std::in_place);
  std::set_intersection(a->begin(), a->end(), b->begin(), b->end(), std::back_inserter(*both));
  return both;
}

// What a list of flags allows, in any order; an empty one: everything.
inline Limit<std::string> LimitTo(std::vector<std::string> names) {
  if (names.empty()) return std::nullopt;
  std::sort(names.begin(), names.end());
  return names;
}

// What a worker is limited to, by its own configuration or by operators.
struct WorkerLimits {
  Limit<std::string> handlers = {};  // task types
  Limit<std::uint32_t> load_balance = {};
  Limit<std::string> shards = {};
  Limit<std::string> tables = {};  // `shard/table` or `table`
  auto operator<=>(const WorkerLimits&) const = default;

  bool Any() const { return handlers || load_balance || shards || tables; }
};
// What both name, where both name something.
WorkerLimits Both(const WorkerLimits& a, const WorkerLimits& b);

// What of a slice a worker's limits forbid.
enum class Obstacle { None, LoadBalance, Shard, Table, Handler };

// What is the same for every slice of a table: None, Shard or Table.
Obstacle ObstacleOfTable(const WorkerLimits& limits, const std::string& shard, const TableName& table);
// The first of these task types that is not allowed; nullptr: all are.
const std::string* FirstRefused(const WorkerLimits& limits, const std::vector<std::string>& types);
// The slice's task types are those of its group.
Obstacle ObstacleOf(const WorkerLimits& limits, const SliceName& slice,
                    const std::vector<std::string>& types);

// Whether a worker with these limits may own the slice: it has to be able to run all of its tasks.
inline bool Eligible(const WorkerLimits& limits, const SliceName& slice,
                     const std::vector<std::string>& types) {
  return ObstacleOf(limits, slice, types) == Obstacle::None;
}

}  // namespace millrace::engine
