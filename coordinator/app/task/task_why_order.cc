// Why a task that is due has not been started: limits, permits, its place in the order, and what slows that.
#include <algorithm>

#include "coordinator/app/cli/text.h"
#include "coordinator/app/task/task_why.h"
#include "framework/base/time_text.h"
#include "framework/config/policy_text.h"

namespace millrace::engine {
namespace {

bool Has(const std::vector<Reason>& reasons, std::string_view code) {
  return std::any_of(reasons.begin(), reasons.end(),
                     [&](const Reason& reason) { return reason.code == code; });
}

// Of what is ahead the most urgent first: `1,204 of priority 3 and 20 of priority 5`.
std::string AheadText(const AheadCount& ahead) {
  std::vector<std::string> parts;
  for (const auto& [priority, count] : ahead.of_priority)
    parts.push_back(WithCommas(count) + " of priority " + std::to_string(priority));
  return Joined(parts, " and ");
}

std::string BandText(const WhyFacts& facts, const BandConfig& band) {
  const auto& cluster = facts.cluster;
  std::string text = "waits for its band's next scan";
  if (cluster && cluster->band_next) text += " at " + At(facts, *cluster->band_next);
  text += " (`handlers." + facts.record.task.handler + ".bands`:";
  if (band.every > Micros(0)) text += " every " + FormatDuration(band.every);
  if (band.most > 0)
    text += std::string(band.every > Micros(0) ? "," : "") + " at most " + Count(band.most, "row", "rows") +
            " each time";
  return text + ")";
}

void ExplainBrake(const WhyFacts& facts, std::vector<Reason>& out) {
  if (!facts.cluster || facts.cluster->scan_speed >= 1) return;
  out.push_back({"braked", "Scanning of its shard is slowed to " + PercentText(facts.cluster->scan_speed) +
                               " by its worker's brake (`engine.brake`, or a database that was away): it "
                               "quickens by itself."});
}

// Without a cluster nobody tells whether more wants to start than may; of how many run at once the permits
// do.
void ExplainLimit(const WhyFacts& facts, const std::string& since, std::vector<Reason>& out) {
  if (ClusterAsked(facts) && facts.cluster->limit_unshared) {
    const std::string& type = facts.record.task.handler;
    out.push_back({"limit", "It " + since + " and waits for a share of the limit of " + type +
                                " (`handlers." + type +
                                ".limit`): no worker has one now; millrace cluster status says more."});
    return;
  }
  const std::string waits = WaitsForLimit(facts);
  if (waits.empty() || (!ClusterAsked(facts) && facts.config.limit->rate == 0)) return;
  out.push_back({"limit", "It " + since + " and " + waits});
}

// None can be had, rows of them are locked, or all permits of its type are others'.
void ExplainPermits(const WhyFacts& facts, std::vector<Reason>& out) {
  const std::size_t most = facts.config.limit ? facts.config.limit->concurrency : 0;
  if (most == 0) return;
  const std::string needs =
      "It needs a permit (`handlers." + facts.record.task.handler + ".limit.concurrency`), and ";
  if (!facts.permits_held_up.empty()) {
    out.push_back({"permits_held_up", needs + "none can be had: " + facts.permits_held_up + "."});
    return;
  }
  if (facts.permits_locked)
    out.push_back({"permits_held_up", needs + "another session has locked rows of them in their home."});
  if (facts.permits.size() < most) return;
  std::vector<std::string> held;
  for (const auto& [task, worker, since] : facts.permits) {
    held.push_back((task.empty() ? "a task that is about to be claimed" : "task " + task) + " on worker " +
                   worker + (since ? " since " + At(facts, *since) : ""));
  }
  out.push_back({"permits", "It waits for one of " + Count(most, "permit", "permits") +
                                " of its type (`handlers." + facts.record.task.handler +
                                ".limit.concurrency`); held by " + Joined(held) + "."});
}

// Why, of two tasks that may both run, it is not this one. Others of its worker's slices may come first too.
void ExplainPlace(const WhyFacts& facts, std::vector<Reason>& out) {
  const std::string since = "has been due since " + At(facts, facts.record.task.run_at);
  const std::size_t before = out.size();
  ExplainLimit(facts, since, out);
  if (facts.ahead.Sum() > 0) {
    out.push_back({"behind", "It " + since + " and waits behind at least " + AheadText(facts.ahead) +
                                 ", which are due in its slice before it."});
  }
  const Task& task = facts.record.task;
  if (const auto band = facts.config.BandOf(Urgency(task.priority, task.failures))) {
    out.push_back({"next_band", "It " + since + " and " + BandText(facts, *band) + "."});
  } else if (facts.ahead.Sum() > 0) {
    return;
  } else if (const auto& scan = facts.config.scan) {
    const bool after = scan->after > Micros(0);
    out.push_back({"next_round", "It " + since + " and waits for a round of its type's scan (`handlers." +
                                     facts.record.task.handler + ".scan`: " + (after ? "after " : "every ") +
                                     FormatDuration(after ? scan->after : scan->every) + ")."});
  } else if (ClusterAsked(facts) && facts.cluster->queue_full) {
    const std::string& type = task.handler;
    out.push_back({"queue_full", "It " + since + " and waits for room in the queue of " +
                                     facts.cluster->owner + " (`handlers." + type +
                                     ".queue` and `queue_bytes`), which is full."});
  } else if (out.size() == before && !Has(out, "permits") && !Has(out, "permits_held_up")) {
    out.push_back({"due", "It " + since + " and waits for a worker."});
  }
}

// Nothing of its type starts: no limit is asked, and no place in the order helps.
bool StartsNothing(const std::vector<Reason>& reasons) {
  return Has(reasons, "paused") || Has(reasons, "breaker") || Has(reasons, "outside_hours") ||
         Has(reasons, "cannot_open") || Has(reasons, "owner_cut_off") || Has(reasons, "table_rests");
}

}  // namespace

std::string At(const WhyFacts& facts, WallTime time) {
  return FormatTime(time) + " (" + Relative(time, facts.now) + ")";
}

bool ClusterAsked(const WhyFacts& facts) { return facts.cluster && facts.cluster->unreached.empty(); }

std::string WaitsForLimit(const WhyFacts& facts) {
  const auto& limit = facts.config.limit;
  if (!limit || (ClusterAsked(facts) && !facts.cluster->limit_holds)) return "";
  const std::string& type = facts.record.task.handler;
  return "waits for the limit of " + LimitText(*limit) + " of " + type + " (`handlers." + type + ".limit`).";
}

void ExplainOrder(const WhyFacts& facts, std::vector<Reason>& out) {
  if (StartsNothing(out)) return;
  ExplainPermits(facts, out);
  ExplainPlace(facts, out);
  ExplainBrake(facts, out);
}

}  // namespace millrace::engine
