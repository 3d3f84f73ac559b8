#include "coordinator/app/process/worker_place.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "coordinator/app/process/process_facts.h"
#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/random.h"
#include "framework/base/time_text.h"
#include "framework/config/policy_text.h"
#include "framework/worker/worker_id.h"

namespace millrace::engine {
namespace {

// The node has to hold them.
constexpr std::size_t kQueuesTold = 64;
constexpr std::size_t kUnrunnableTold = 100;
constexpr std::size_t kRestingTold = 20;

nlohmann::ordered_json Told(const ShardStatus& shard, std::int64_t lag_ms) {
  nlohmann::ordered_json one{
      {"reachable", shard.reachable}, {"lag_ms", lag_ms}, {"poll_ms", shard.poll.count() / 1000}};
  one[status_key::kDoorbell] = shard.doorbell;
  if (!shard.incarnation.empty()) one[status_key::kIncarnation] = shard.incarnation;
  if (!shard.error.empty()) one[status_key::kError] = shard.error;
  if (!shard.unrunnable.empty()) one[status_key::kUnrunnable] = Brief(shard.unrunnable, kUnrunnableTold);
  for (const auto& [table, why] : shard.resting) {
    if (one[status_key::kResting].size() == kRestingTold) break;
    one[status_key::kResting][table] = Brief({why}, 1).front();
  }
  for (const RoundStatus& round : shard.rounds) {
    auto& told = one[status_key::kRounds][round.handler];
    told = {{status_key::kRoundOpen, round.open}, {"claimed", round.claimed}};
    if (round.next)
      told[status_key::kRoundNext] = FormatTime(std::chrono::floor<std::chrono::seconds>(*round.next));
  }
  if (shard.speed < 1) one[status_key::kScanSpeed] = shard.speed;
  for (const BandStatus& band : shard.bands) {
    one[status_key::kBands].push_back(
        {{status_key::kBandHandler, band.handler},
         {status_key::kBandPriority, RangeText(band.rule.priority_from, band.rule.priority_to)},
         {status_key::kBandFailures, RangeText(band.rule.failures_from, band.rule.failures_to)},
         {"claimed", band.claimed},
         {status_key::kBandNext, FormatTime(std::chrono::ceil<std::chrono::seconds>(band.next))}});
  }
  return one;
}

void TellQueues(const std::vector<QueueStatus>& queues, nlohmann::ordered_json& json) {
  for (std::size_t i = 0; i < std::min(queues.size(), kQueuesTold); ++i) {
    json["queues"][queues[i].name] = {{"waiting", queues[i].waiting}, {"busy", queues[i].busy}};
  }
}

}  // namespace

std::vector<std::string> TypesRun(const Config& config, const PluginSet& plugins,
                                  const std::vector<std::string>& allowed) {
  std::set<std::string> handlers;
  for (const HandlerInfo& info : plugins.Handlers()) handlers.insert(info.name);
  std::set<std::string> types = handlers;
  for (const auto& [type, handler] : config.handlers) {
    if (handlers.contains(handler.uses)) types.insert(type);
  }
  return *Both(Limit<std::string>({types.begin(), types.end()}), LimitTo(allowed));
}

Result<WorkerDocument> PlaceOf(const WorkerFlags& flags, const std::string& id) {
  WorkerDocument document;
  document.host = HostName();
  document.pid = getpid();
  document.incarnation = id + "." + Random::FromSystem().Hex(12);
  document.weight = flags.weight;
  document.limits.shards = LimitTo(flags.shards);
  document.limits.tables = LimitTo(flags.tables);
  document.version = MILLRACE_VERSION;
  BOOST_OUTCOME_TRY(numbers, ReadLoadBalance(flags.load_balance));
  if (!numbers.empty()) document.limits.load_balance = std::move(numbers);
  return document;
}

StatusTeller::StatusTeller(const Worker& worker, const PluginSet& plugins)
    : worker_(worker), refused_(plugins.Refused()) {
  for (const HandlerInfo& info : plugins.Handlers()) plugins_.insert(info.plugin);
}

std::string StatusTeller::Tell(const std::map<std::string, std::string>& shard_refusals) {
  const BootTime now = BootClock::now();
  const WorkerTotals totals = worker_.Totals();
  const WorkerStatus status = worker_.Status();
  nlohmann::ordered_json json{{"claimed", totals.claimed},
                              {"settled", EndedOf(totals)},
                              {"succeeded", totals.succeeded},
                              {"failed", totals.failed},
                              {"late_settles", totals.refused},
                              {"rescued", totals.rescued},
                              {status_key::kRunning, totals.running},
                              {"queued", totals.queued}};
  if (last_ && now > *last_) {
    const double seconds = std::chrono::duration<double>(now - *last_).count();
    json[status_key::kClaimRate] = static_cast<double>(totals.claimed - before_.claimed) / seconds;
    json[status_key::kSettleRate] = static_cast<double>(EndedOf(totals) - EndedOf(before_)) / seconds;
  }
  last_ = now;
  before_ = totals;
  std::int64_t lag = 0;
  nlohmann::ordered_json shards = nlohmann::ordered_json::object();
  for (const ShardStatus& shard : status.shards) {
    const std::int64_t lag_ms = std::chrono::duration_cast<std::chrono::milliseconds>(shard.lag).count();
    lag = std::max(lag, lag_ms);
    shards[shard.shard] = Told(shard, lag_ms);
  }
  json[status_key::kLag] = lag;
  if (const auto limits = worker_.Limits(); !limits.empty())
    json[status_key::kLimits] = nlohmann::ordered_json::parse(limits_.Tell(limits));
  json[status_key::kShards] = std::move(shards);
  json[status_key::kPlugins] = plugins_;
  for (const PermitStatus& type : status.permits) {
    json[status_key::kPermits][type.handler] = {
        {"of", type.concurrency}, {status_key::kPermitsHeld, type.held}, {"waiting", type.waiting}};
  }
  if (!status.permit_trouble.empty()) json[status_key::kPermitsHeldUp] = status.permit_trouble;
  if (!status.permits_locked.empty()) json[status_key::kPermitsLocked] = status.permits_locked;
  if (!status.paused.empty()) json["paused"] = status.paused;
  for (const BreakerStatus& breaker : status.breakers) {
    auto& told = json[status_key::kBreakers][breaker.handler];
    told = {{"open", breaker.open}, {"calls", breaker.calls}, {"failed", breaker.failed}};
    told["uncharged"] = breaker.uncharged;
    if (breaker.by_hand) told["by_hand"] = breaker.open ? "open" : "close";
    if (breaker.open) told["why"] = breaker.why;
    if (breaker.open && !breaker.by_hand)
      told[status_key::kNextProbe] =
          FormatTime(std::chrono::ceil<std::chrono::seconds>(SystemClock().WallNow() + breaker.next_probe));
  }
  if (!status.outside_hours.empty()) json["outside_hours"] = status.outside_hours;
  TellQueues(status.queues, json);
  if (!status.full.empty()) json[status_key::kFull] = status.full;
  std::vector<std::string> refusals = status.refusals;
  for (const auto& [shard, why] : shard_refusals) refusals.push_back("shards." + shard + ": " + why);
  refusals.insert(refusals.end(), refused_.begin(), refused_.end());
  if (!refusals.empty()) json[status_key::kRefusals] = refusals;
  return JsonText(json);
}

}  // namespace millrace::engine
