#include "framework/policy/pauses.h"

#include <algorithm>
#include <boost/algorithm/string.hpp>
#include <cctype>

#include "framework/task/built_in.h"
#include "framework/task/slice_name.h"
#include "framework/task/task.h"

namespace millrace::engine {
namespace {

constexpr std::string_view kBreaker = "breaker";
constexpr std::string_view kHandOpen = "open";
constexpr std::string_view kHandClose = "close";
constexpr std::string_view kTripped = "tripped";

}  // namespace

bool IsWorkerName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxWorkerName && name.front() != '.' &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char c) { return std::isalnum(c) || c == '.' || c == '_' || c == '-'; });
}

Result<Pauses> Pauses::Parse(std::span<const std::string> names) {
  Pauses pauses;
  for (const std::string& name : names) {
    BOOST_OUTCOME_TRYV(pauses.Add(name));
  }
  return pauses;
}

Status Pauses::Add(std::string_view name) {
  std::vector<std::string> parts;
  boost::split(parts, name, boost::is_any_of(":"));
  const std::string& kind = parts[0];
  const auto table = parts.size() == 4 ? ParseTableName(parts[2]) : std::nullopt;
  const auto slice = parts.size() == 4 ? ReadSliceNumberOfName(parts[3]) : std::nullopt;
  if (kind == "cluster" && parts.size() == 1) {
    cluster_ = true;
  } else if (kind == "shard" && parts.size() == 2 && IsShardName(parts[1])) {
    shards_.emplace(parts[1]);
  } else if (kind == "handler" && parts.size() == 2 && IsHandlerName(parts[1])) {
    handlers_.emplace(parts[1]);
  } else if (kind == "slice" && table && slice && IsShardName(parts[1])) {
    slices_.emplace(parts[1], *table, *slice);
  } else if (kind == "worker" && parts.size() == 2 && IsWorkerName(parts[1])) {
    workers_.emplace(parts[1]);
  } else if (kind == kBreaker && parts.size() == 3 && IsHandlerName(parts[1]) &&
             (parts[2] == kHandOpen || parts[2] == kHandClose)) {
    if (parts[2] == kHandOpen) opened_.emplace(parts[1]);
  } else if (ReadTripped(name)) {
    // It is told to people.
  } else {
    return Fail(ErrorCode::Invalid, "'" + Shorten(name, 200) +
                                        "' names nothing that can be paused; write cluster, shard:NAME, "
                                        "handler:NAME, slice:SHARD:TABLE:NUMBER or worker:ID");
  }
  names_.emplace(name);
  return {};
}

bool Pauses::Covers(std::string_view shard, const TableName& table, std::uint32_t slice,
                    std::string_view handler) const {
  if (names_.empty()) return false;
  const bool everything = cluster_ || shards_.contains(shard);
  return (everything && !CarriesAlerts(handler)) || handlers_.contains(handler) || OpenedByHand(handler) ||
         (!slices_.empty() && slices_.contains({std::string(shard), table, slice}));
}

std::string BreakerHandName(const std::string& type, BreakerHand hand) {
  if (hand == BreakerHand::Auto) return "";
  const std::string_view word = hand == BreakerHand::Open ? kHandOpen : kHandClose;
  return std::string(kBreaker) + ":" + type + ":" + std::string(word);
}

std::string TrippedName(const std::string& type, const std::string& worker) {
  return std::string(kBreaker) + ":" + type + ":" + std::string(kTripped) + ":" + worker;
}

std::optional<Tripped> ReadTripped(std::string_view name) {
  std::vector<std::string> parts;
  boost::split(parts, name, boost::is_any_of(":"));
  const bool is_one = parts.size() == 4 && parts[0] == kBreaker && parts[2] == kTripped &&
                      IsHandlerName(parts[1]) && IsWorkerName(parts[3]);
  return is_one ? std::optional(Tripped{parts[1], parts[3]}) : std::nullopt;
}

std::map<std::string, BreakerHand> BreakerHandsOf(std::span<const std::string> names) {
  std::map<std::string, BreakerHand> hands;
  for (const std::string& name : names) {
    if (!name.starts_with(kBreaker)) continue;
    std::vector<std::string> parts;
    boost::split(parts, name, boost::is_any_of(":"));
    if (parts.size() != 3) continue;
    const BreakerHand said = parts[2] == kHandOpen ? BreakerHand::Open : BreakerHand::Close;
    BreakerHand& hand = hands.try_emplace(parts[1], said).first->second;
    if (said == BreakerHand::Open) hand = said;
  }
  return hands;
}

}  // namespace millrace::engine
