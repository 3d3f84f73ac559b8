// What operators have paused: the red button, as a value. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "framework/base/result.h"
#include "framework/policy/breaker.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// A worker's stable name: letters, digits, '.', '_' and '-', at most 48, and no '.' at the beginning.
bool IsWorkerName(std::string_view name);
inline constexpr std::size_t kMaxWorkerName = 48;

// Names, as they stand under control/pause and in a shard's own table:
//   cluster · shard:S · handler:H · slice:S:T:N (shard, table, load-balance number) · worker:ID
// What operators have said of a breaker stands among them and goes the same ways: breaker:H:open pauses the
// type like handler:H, whether a breaker is configured for it or not. breaker:H:close pauses nothing; nor
// does breaker:H:tripped:W, by which a worker without a cluster tells that its breaker is open.
class Pauses {
 public:
  // Invalid with the first name that is none of these.
  static Result<Pauses> Parse(std::span<const std::string> names);
  // Adds one more; Invalid, and nothing changed, for a name that is none of these.
  Status Add(std::string_view name);

  bool Empty() const { return names_.empty(); }
  // May nothing of this be started? Cheap where nothing is paused. A pause of the cluster or of a shard lets
  // messages of alerts through, since whoever pressed the button wants to hear of what goes wrong meanwhile;
  // one of their types or slices holds them.
  bool Covers(std::string_view shard, const TableName& table, std::uint32_t slice,
              std::string_view handler) const;
  // The type's breaker is open by hand.
  bool OpenedByHand(std::string_view handler) const { return opened_.contains(handler); }
  // May this worker start nothing? It keeps its slices: nobody else does their work meanwhile.
  bool CoversWorker(std::string_view id) const { return workers_.contains(id); }
  // Each name once, sorted.
  std::vector<std::string> Names() const { return {names_.begin(), names_.end()}; }

  bool operator==(const Pauses&) const = default;

 private:
  std::set<std::string> names_;
  bool cluster_ = false;
  std::set<std::string, std::less<>> shards_;
  std::set<std::string, std::less<>> handlers_;
  std::set<std::string, std::less<>> opened_;  // task types whose breaker is
  std::set<std::string, std::less<>> workers_;
  std::set<std::tuple<std::string, TableName, std::uint32_t>> slices_;
};

// `breaker:H:open`; empty for Auto, which is no word.
std::string BreakerHandName(const std::string& type, BreakerHand hand);
struct Tripped {
  std::string type;
  std::string worker;
};
std::string TrippedName(const std::string& type, const std::string& worker);
// nullopt: the name says something else.
std::optional<Tripped> ReadTripped(std::string_view name);
// By task type, from names of which some say that; where both are said, open counts.
std::map<std::string, BreakerHand> BreakerHandsOf(std::span<const std::string> names);

}  // namespace millrace::engine
