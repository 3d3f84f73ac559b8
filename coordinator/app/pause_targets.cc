#include "coordinator/app/pause_targets.h"

#include <algorithm>
#include <charconv>

#include "framework/base/suggest.h"

namespace millrace::engine {
namespace {

std::vector<std::string> Split(const std::string& name) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  for (std::size_t colon = 0; colon != std::string::npos; from = colon + 1) {
    colon = name.find(':', from);
    parts.push_back(name.substr(from, colon == std::string::npos ? colon : colon - from));
  }
  return parts;
}

Failure Unknown(const std::string& name, const std::string& why) {
  return Fail(ErrorCode::Invalid,
              "nothing was paused by '" + name + "': " + why + "; to pause it all the same, add --force");
}

std::string Hint(const std::string& wrong, const std::vector<std::string>& known) {
  if (std::string hint = DidYouMean(wrong, known); !hint.empty()) return hint;
  std::string all;
  for (std::size_t i = 0; i < known.size() && i < 8; ++i) all += (i == 0 ? "" : ", ") + known[i];
  return known.empty() ? "" : "; there are " + all + (known.size() > 8 ? " …" : "");
}

Status CheckShard(const std::string& name, const std::string& shard, const PauseTargets& known) {
  if (!known.shards || known.shards->contains(shard)) return {};
  return Unknown(
      name, "there is no shard '" + shard + "'" + Hint(shard, {known.shards->begin(), known.shards->end()}));
}

Status CheckType(const std::string& name, const std::string& type, const PauseTargets& known) {
  if (!known.types || known.types->contains(type)) return {};
  return Unknown(name, "nobody runs the task type '" + type + "', and none is configured" +
                           Hint(type, {known.types->begin(), known.types->end()}));
}

Status CheckSlice(const std::string& name, const std::vector<std::string>& parts, const PauseTargets& known) {
  BOOST_OUTCOME_TRYV(CheckShard(name, parts[1], known));
  const auto tables = known.tables.find(parts[1]);
  if (tables == known.tables.end()) return {};
  std::vector<std::string> names;
  for (const TableInfo& info : tables->second) {
    names.emplace_back(info.table);
    if (info.table != parts[2]) continue;
    std::uint32_t number = 0;
    std::from_chars(parts[3].data(), parts[3].data() + parts[3].size(), number);
    if (info.Has(number)) return {};
    return Unknown(name,
                   parts[1] + "/" + parts[2] + " has the slices 0 to " + std::to_string(info.slices - 1));
  }
  return Unknown(name, "shard " + parts[1] + " has no task table '" + parts[2] + "'" + Hint(parts[2], names));
}

}  // namespace

Status CheckPauseTargets(const std::vector<std::string>& names, const PauseTargets& known) {
  for (const std::string& name : names) {
    const std::vector<std::string> parts = Split(name);
    Status good;
    if (parts[0] == "shard") good = CheckShard(name, parts[1], known);
    if (parts[0] == "handler") good = CheckType(name, parts[1], known);
    if (parts[0] == "slice") good = CheckSlice(name, parts, known);
    if (!good) return good;
  }
  return {};
}

}  // namespace millrace::engine
