#include "coordinator/app/limit_report.h"

#include <algorithm>
#include <tuple>

#include "framework/config/policy_text.h"

namespace millrace::engine {
namespace {

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
  return text.empty() ? "nothing" : text;
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

bool HoldsBack(const ClusterSnapshot& snapshot, const std::string& type) {
  const std::vector<LimitLine> lines = LimitLines(snapshot);
  return std::any_of(lines.begin(), lines.end(), [&](const LimitLine& line) {
    return line.type == type && (line.use.wants_rate || line.use.wants_concurrency);
  });
}

}  // namespace millrace::engine
