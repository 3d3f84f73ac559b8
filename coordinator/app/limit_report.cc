#include "coordinator/app/limit_report.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "framework/config/policy_text.h"

namespace millrace::engine {
namespace {

constexpr char kNothing[] = "nothing";

// Statuses are written by workers of any version: what can't be read says nothing.
std::string ShareText(const nlohmann::ordered_json& status, const std::string& type) {
  const auto at = [](const nlohmann::ordered_json& json, const std::string& key) {
    return json.is_object() && json.contains(key) ? json.at(key) : nlohmann::ordered_json();
  };
  const auto share = at(at(at(status, status_key::kLimits), type), status_key::kShare);
  const auto number = [&](const char* key) {
    const auto value = at(share, key);
    return value.is_number() ? std::max(value.get<double>(), 0.0) : 0.0;
  };
  LimitConfig part;
  part.rate = number("rate");
  part.concurrency = static_cast<std::uint32_t>(std::min(number("concurrency"), 1e9));
  std::string text = LimitText(part);
  if (number("permits") > 0) text += text.empty() ? "by permits" : ", by permits";
  return text.empty() ? kNothing : text;
}

}  // namespace

std::vector<LimitLine> LimitLines(const ClusterSnapshot& snapshot) {
  std::vector<LimitLine> lines;
  for (const auto& [id, status] : snapshot.statuses) {
    const auto told =
        ReadStatus(status.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    if (!told) continue;
    for (const auto& [type, use] : told->limits) lines.push_back({type, id, ShareText(status, type), use});
  }
  std::sort(lines.begin(), lines.end(), [](const LimitLine& a, const LimitLine& b) {
    return std::tie(a.type, a.worker) < std::tie(b.type, b.worker);
  });
  return lines;
}

std::map<std::string, std::uint64_t> Unshared(const ClusterSnapshot& snapshot) {
  std::map<std::string, std::uint64_t> running;
  std::set<std::string> shared;
  for (const LimitLine& line : LimitLines(snapshot)) {
    const auto worker = snapshot.workers.find(line.worker);
    if (worker == snapshot.workers.end() || snapshot.SliceCount(line.worker) == 0) continue;
    const auto& types = worker->second.limits.handlers;
    if (types && std::find(types->begin(), types->end(), line.type) == types->end()) continue;
    running[line.type] += line.use.running;
    if (line.share != kNothing) shared.insert(line.type);
  }
  for (const std::string& type : shared) running.erase(type);
  return running;
}

bool HoldsBack(const ClusterSnapshot& snapshot, const std::string& type) {
  const std::vector<LimitLine> lines = LimitLines(snapshot);
  return std::any_of(lines.begin(), lines.end(), [&](const LimitLine& line) {
    return line.type == type && (line.use.wants_rate || line.use.wants_concurrency);
  });
}

}  // namespace millrace::engine
