#include "coordinator/app/cluster/limit_report.h"

#include <algorithm>
#include <tuple>

#include "framework/config/policy_text.h"
#include "framework/policy/eligibility.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

constexpr char kNothing[] = "nothing";

const ordered_json& ShareIn(const ordered_json& status, const std::string& type) {
  return PartOf(PartOf(PartOf(status, status_key::kLimits), type), status_key::kShare);
}

// Of a type that is held by permits the worker tells how many it has: who has one is who may run.
std::string ShareText(const ordered_json& status, const std::string& type, double whole) {
  const ordered_json& share = ShareIn(status, type);
  const ordered_json& permits = PartOf(PartOf(status, status_key::kPermits), type);
  LimitConfig part;
  part.rate = NumberPart(share, share_key::kRate);
  const bool by_permit = permits.is_object() || NumberPart(share, share_key::kPermits) > 0;
  if (!by_permit) part.concurrency = static_cast<std::uint32_t>(NumberPart(share, share_key::kConcurrency));
  std::string text = LimitText(part, whole);
  if (by_permit) text += text.empty() ? "by permit" : ", by permit";
  if (const double held = NumberPart(permits, status_key::kPermitsHeld); held > 0)
    text += ", has " + std::to_string(static_cast<std::uint64_t>(held));
  return text.empty() ? kNothing : text;
}

}  // namespace

std::vector<LimitLine> LimitLines(const ClusterSnapshot& snapshot) {
  std::vector<LimitLine> lines;
  std::map<std::string, double> rates;  // by type, of all shares
  for (const auto& [id, status] : snapshot.statuses) {
    for (const auto& [type, told] : ObjectPart(status, status_key::kLimits).items())
      rates[type] += NumberPart(ShareIn(status, type), share_key::kRate);
  }
  for (const auto& [id, status] : snapshot.statuses) {
    const auto told =
        ReadStatus(status.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    if (!told) continue;
    for (const auto& [type, use] : told->limits)
      lines.push_back({type, id, ShareText(status, type, rates[type]), use});
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
    if (!Allows(worker->second.limits.handlers, line.type)) continue;
    running[line.type] += line.use.running;
    if (line.share != kNothing) shared.insert(line.type);
  }
  for (const std::string& type : shared) running.erase(type);
  return running;
}

std::set<std::string> HeldBack(const ClusterSnapshot& snapshot) {
  std::set<std::string> types;
  for (const LimitLine& line : LimitLines(snapshot)) {
    if (line.use.wants_rate || line.use.wants_concurrency) types.insert(line.type);
  }
  return types;
}

}  // namespace millrace::engine
