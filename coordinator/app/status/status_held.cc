// Why due tasks wait on purpose: what holds their type back, by its configuration, its shards' rows and the
// word of the cluster's workers.
#include <algorithm>
#include <cmath>

#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster/cluster_health.h"
#include "coordinator/app/cluster/limit_report.h"
#include "coordinator/app/status/status_report.h"
#include "framework/base/time_text.h"
#include "framework/config/policy_text.h"
#include "framework/mill/hours_policy.h"

namespace millrace::engine {
namespace {

// What nothing holds back is found within a poll.
constexpr Micros kFoundWithin = std::chrono::seconds(2);
// Starts a second of a limit below which people wonder when the next is.
constexpr double kSlowRate = 0.1;

Micros DueFor(const StatusFacts& facts, const TypeState& type) { return facts.now - *type.now.oldest_due; }

// As many run at once as may: by the permits that somebody has, or without a cluster by what is claimed.
bool AllPlacesTaken(const StatusFacts& facts, const std::string& handler, const TypeState& type,
                    const LimitConfig& limit) {
  if (limit.concurrency == 0) return false;
  if (!facts.cluster && type.now.running.count >= limit.concurrency) return true;
  std::size_t held = 0;
  for (const auto& [name, shard] : facts.shards) {
    held +=
        static_cast<std::size_t>(std::count_if(shard.permits.begin(), shard.permits.end(),
                                               [&](const Permit& one) { return one.handler == handler; }));
  }
  return held >= limit.concurrency;
}

// The limit of a type of which nothing starts, though one should have by now, is not why.
bool LimitHolds(const StatusFacts& facts, const std::string& handler, const TypeState& type,
                const LimitConfig& limit) {
  if (AllPlacesTaken(facts, handler, type, limit)) return true;
  if (facts.cluster && facts.cluster->unreached.empty()) return facts.cluster->holds.limits.contains(handler);
  if (limit.rate == 0) return false;
  if (type.now.running.count > 0 || facts.ended.contains(handler)) return true;
  const double seconds = facts.window ? std::chrono::duration<double>(*facts.window).count() : 0;
  return limit.rate * seconds < 3;
}

void AddLimit(const StatusFacts& facts, const std::string& handler, const TypeState& type,
              const HandlerConfig& config, std::vector<Hold>& holds) {
  if (!config.limit || !LimitHolds(facts, handler, type, *config.limit)) return;
  std::string text = "its limit is " + LimitText(*config.limit) + " (`handlers." + handler + ".limit`)";
  const double rate = config.limit->rate;
  if (rate > 0 && rate < kSlowRate)
    text += ", one every " +
            FormatDuration(std::chrono::round<std::chrono::seconds>(Micros(std::llround(1e6 / rate))));
  holds.push_back({"limit", std::move(text)});
}

void AddBands(const StatusFacts& facts, const std::string& handler, const TypeState& type,
              const HandlerConfig& config, std::vector<Hold>& holds) {
  std::string next;
  if (facts.cluster) {
    const auto at = facts.cluster->holds.bands.find(handler);
    if (at != facts.cluster->holds.bands.end() && at->second > facts.now)
      next = ", next " + Relative(at->second, facts.now);
  }
  std::vector<std::string> rules;
  bool all = false;
  for (const BandConfig& band : config.BandsInForce()) {
    if (band.every == Micros(0)) continue;
    const bool late = next.empty() && band.IsOverdue(DueFor(facts, type));
    if (late && band.most == 0) continue;
    all = all || !late;  // later only those beyond the most of each time may wait
    rules.push_back("those of priority " + RangeText(band.priority_from, band.priority_to) + " with " +
                    RangeText(band.failures_from, band.failures_to) + " failures are looked for every " +
                    FormatDuration(band.every) +
                    (band.most > 0 ? ", at most " + Count(band.most, "row", "rows") : ""));
  }
  if (!rules.empty())
    holds.push_back({"next_band", Joined(rules) + " (`handlers." + handler + ".bands`)" + next, all});
}

// Its threads are busy: what is due waits in the table. Without a cluster nobody tells.
void AddFull(const StatusFacts& facts, const std::string& handler, std::vector<Hold>& holds) {
  if (!facts.cluster) return;
  const auto full = facts.cluster->holds.full.find(handler);
  if (full == facts.cluster->holds.full.end()) return;
  const std::vector<std::string> workers(full->second.begin(), full->second.end());
  holds.push_back({"queue_full", "its queue is full on " + Joined(workers) + " (`handlers." + handler +
                                     ".queue` and `queue_bytes`)"});
}

// It slows down, and stops nothing. Without a cluster nobody tells how much.
void AddBrake(const StatusFacts& facts, const std::string& handler, std::vector<Hold>& holds) {
  if (!facts.cluster || !facts.cluster->unreached.empty()) {
    if (holds.empty() && facts.brake > Micros(0))
      holds.push_back({"braked", "while its database takes longer than " + FormatDuration(facts.brake) +
                                     " to answer, scanning is slowed (`engine.brake`)"});
    return;
  }
  double slowest = 1;
  for (const auto& [name, shard] : facts.shards) {
    const auto& all = shard.waiting.handlers;
    const bool here = std::any_of(all.begin(), all.end(), [&](const HandlerOverview& one) {
      return one.handler == handler && one.oldest_due;
    });
    const auto speed = facts.cluster->holds.speeds.find(name);
    if (here && speed != facts.cluster->holds.speeds.end()) slowest = std::min(slowest, speed->second);
  }
  if (slowest < 1)
    holds.push_back({"braked", "scanning of its shard is slowed to " + PercentText(slowest) +
                                   ": its database is slow to answer (`engine.brake`), or was away and is "
                                   "let in gradually"});
}

// With when it is probed: by the workers' word, or as its rules say.
std::string OpenText(const StatusFacts& facts, const std::string& handler) {
  const std::string text = "its breaker is open";
  if (OpenedByHand(facts, handler)) return text + " by hand, and not probed";
  if (facts.cluster) {
    const auto next = facts.cluster->holds.probes.find(handler);
    if (next != facts.cluster->holds.probes.end() && next->second > facts.now)
      return text + ", probed next " + Relative(next->second, facts.now);
  }
  const auto config = facts.handlers.find(handler);
  if (config == facts.handlers.end() || !config->second.breaker) return text;
  return text + ", probed every " + FormatDuration(config->second.breaker->probe_every);
}

using Json = nlohmann::ordered_json;

void ReadShard(const Json& shard, const std::string& name, ClusterHolds& holds) {
  if (const Json& speed = PartOf(shard, status_key::kScanSpeed); speed.is_number() && speed < 1.0) {
    const auto at = holds.speeds.try_emplace(name, 1.0).first;
    at->second = std::min(at->second, std::max(0.0, speed.get<double>()));
  }
  for (const Json& band : PartOf(shard, status_key::kBands)) {
    const auto next = ParseTime(TextPart(band, status_key::kBandNext));
    if (!next) continue;
    const auto [at, is_new] = holds.bands.try_emplace(TextPart(band, status_key::kBandHandler), *next);
    if (!is_new) at->second = std::min(at->second, *next);
  }
}

}  // namespace

ClusterHolds HoldsOf(const ClusterSnapshot& snapshot) {
  ClusterHolds holds;
  holds.limits = HeldBack(snapshot);
  for (const auto& [type, running] : Unshared(snapshot)) holds.limits.insert(type);
  for (const auto& [type, breaker] : snapshot.breakers) {
    if (const auto next = NextProbe(snapshot, type)) holds.probes[type] = *next;
  }
  for (const auto& [id, status] : snapshot.statuses) {
    for (const std::string& type : TextsPart(status, status_key::kFull)) holds.full[type].insert(id);
    for (const auto& [name, shard] : ObjectPart(status, status_key::kShards).items())
      ReadShard(shard, name, holds);
  }
  return holds;
}

std::vector<Hold> HoldsOn(const StatusFacts& facts, const std::string& handler, const TypeState& type) {
  std::vector<Hold> holds;
  if (!type.now.oldest_due) return holds;
  if (PausedEverywhere(facts, handler)) holds.push_back({"paused", "paused"});
  if (BreakerIsOpen(facts, handler)) holds.push_back({"breaker", OpenText(facts, handler)});
  const auto config = facts.handlers.find(handler);
  if (config != facts.handlers.end() && config->second.hours) {
    const std::string closed = ClosedBy(*config->second.hours, facts.now);
    if (!closed.empty()) holds.push_back({"outside_hours", closed + " (`handlers." + handler + ".hours`)"});
  }
  if (!holds.empty() || DueFor(facts, type) < kFoundWithin) return holds;
  if (config != facts.handlers.end()) {
    AddLimit(facts, handler, type, config->second, holds);
    AddBands(facts, handler, type, config->second, holds);
  }
  AddFull(facts, handler, holds);
  if (!IsHeld(holds) && SomebodyMayRun(facts, handler)) AddBrake(facts, handler, holds);
  return holds;
}

bool IsHeld(const std::vector<Hold>& holds) {
  return std::any_of(holds.begin(), holds.end(), [](const Hold& hold) {
    return hold.all && hold.code != "braked" && hold.code != "queue_full";
  });
}

std::vector<std::string> HeldLines(const StatusFacts& facts) {
  std::vector<std::string> lines;
  for (const auto& [handler, type] : TypesOf(facts)) {
    const std::vector<Hold> holds = HoldsOn(facts, handler, type);
    if (holds.empty()) continue;
    std::vector<std::string> causes;
    for (const Hold& hold : holds) causes.push_back(hold.text);
    lines.push_back((IsHeld(holds) ? "held: " : "slowed: ") + HowMany(type.now.waiting, "task", "tasks") +
                    " of " + handler + ": " + Joined(causes, "; "));
  }
  return lines;
}

}  // namespace millrace::engine
