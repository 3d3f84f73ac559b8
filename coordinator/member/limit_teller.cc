#include "coordinator/member/limit_teller.h"

#include <algorithm>
#include <cmath>

#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/json_text.h"

namespace millrace::engine {
namespace {

nlohmann::ordered_json LimitJson(const LimitView& limit) {
  nlohmann::ordered_json json{{status_key::kUses, std::round(limit.use.rate * 100) / 100},
                              {status_key::kSaved, std::floor(limit.use.saved * 10000) / 10000},
                              {status_key::kRunning, limit.use.running},
                              {status_key::kPlaced, limit.use.placed},
                              {status_key::kWaiting, limit.use.waiting},
                              {status_key::kWantsRate, limit.use.wants_rate},
                              {status_key::kWantsConcurrency, limit.use.wants_concurrency}};
  nlohmann::ordered_json& share = json[status_key::kShare] = nlohmann::ordered_json::object();
  if (limit.limit.rate > 0) share[share_key::kRate] = limit.share.rate;
  if (limit.limit.concurrency > 0) share[share_key::kConcurrency] = limit.share.concurrency;
  if (limit.share.permits > 0) share[share_key::kPermits] = limit.share.permits;
  return json;
}

// A use that is half or twice as much; or of what runs beyond its share some has ended.
bool IsNews(const LimitUse& told, const LimitView& view) {
  const LimitUse& now = view.use;
  const bool permits = view.share.permits > 0;
  const std::uint32_t counted = permits ? told.placed : told.running;
  const bool beyond = view.limit.concurrency > 0 && counted > view.share.concurrency;
  return told.wants_rate != now.wants_rate || told.wants_concurrency != now.wants_concurrency ||
         std::abs(told.saved - now.saved) >= 0.5 ||
         (beyond && (permits ? now.placed : now.running) < counted) || now.rate > 2 * told.rate + 1 ||
         told.rate > 2 * now.rate + 1;
}

}  // namespace

std::string LimitTeller::Tell(const std::map<std::string, LimitView>& limits) {
  told_.clear();
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [type, limit] : limits) {
    told_[type] = limit.use;
    json[type] = LimitJson(limit);
  }
  return JsonText(json);
}

std::optional<bool> LimitTeller::Pressing(const std::map<std::string, LimitView>& limits) const {
  if (limits.empty()) return std::nullopt;
  return std::any_of(limits.begin(), limits.end(), [&](const auto& limit) {
    const auto told = told_.find(limit.first);
    return told == told_.end() || IsNews(told->second, limit.second);
  });
}

}  // namespace millrace::engine
