#include "coordinator/alerts/judge.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "framework/base/time_text.h"
#include "framework/mill/hours_policy.h"
#include "framework/store/alert_store.h"
#include "framework/store/schedule_store.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kMostParts = 10;

std::string Many(std::uint64_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

Micros Seconds(Micros time) { return std::chrono::duration_cast<std::chrono::seconds>(time); }

// The greatest values first.
template <class Value>
std::vector<std::pair<std::string, Value>> Greatest(const std::map<std::string, Value>& values) {
  std::vector<std::pair<std::string, Value>> sorted(values.begin(), values.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (sorted.size() > kMostParts) sorted.resize(kMostParts);
  return sorted;
}

template <class Value>
void Name(const std::map<std::string, Value>& counted, AlertFact& fact) {
  if (counted.size() > AlertFact::kMostNames) return;
  for (const auto& [name, value] : counted) fact.names.push_back(name);
}

// More than was said, or others.
bool IsNews(const AlertFact& fact, const SaidAlert& said, BootTime now) {
  if (fact.count > said.count) return true;
  if (fact.newest && said.fired_at && now - *fact.newest > *said.fired_at) return true;
  if (said.names.empty()) return false;
  return !std::includes(said.names.begin(), said.names.end(), fact.names.begin(), fact.names.end());
}

bool IsAbout(const AlertConfig& alert, const std::string& type) {
  return alert.handler == "*" || alert.handler == type;
}

AlertFact FailedFact(const AlertConfig& alert, const std::map<std::string, std::uint64_t>& failed) {
  AlertFact fact;
  std::map<std::string, std::uint64_t> meant;
  for (const auto& [type, count] : failed) {
    if (!IsAbout(alert, type)) continue;
    meant[type] = count;
    fact.count += count;
  }
  fact.holds = fact.count > alert.more_than;
  fact.what = Many(fact.count, "task has failed", "tasks have failed");
  for (const auto& [type, count] : Greatest(meant)) {
    fact.parts.push_back(type + ": " + std::to_string(count));
  }
  return fact;
}

AlertFact LateFact(const AlertConfig& alert, const std::map<std::string, Micros>& late) {
  AlertFact fact;
  std::map<std::string, Micros> meant;
  for (const auto& [type, ago] : late) {
    if (IsAbout(alert, type) && ago > alert.longer_than) meant[type] = Seconds(ago);
  }
  fact.holds = !meant.empty();
  fact.count = meant.size();
  Name(meant, fact);
  const auto greatest = Greatest(meant);
  fact.what = meant.empty() ? "no task is due for longer than " + FormatDuration(alert.longer_than)
                            : "a task of " + greatest.front().first + " is due for " +
                                  FormatDuration(greatest.front().second) + " and has not been started";
  for (const auto& [type, ago] : greatest) fact.parts.push_back(type + ": due for " + FormatDuration(ago));
  return fact;
}

AlertFact UnrunnableFact(const std::map<std::string, Micros>& unrunnable) {
  AlertFact fact;
  fact.holds = !unrunnable.empty();
  fact.count = unrunnable.size();
  Name(unrunnable, fact);
  fact.what = Many(fact.count, "task type has", "task types have") + " due tasks that no worker runs";
  for (const auto& [type, ago] : Greatest(unrunnable)) {
    fact.parts.push_back(type + ": due for " + FormatDuration(Seconds(ago)));
  }
  return fact;
}

AlertFact UnownedFact(const std::vector<std::string>& unowned) {
  AlertFact fact;
  fact.holds = !unowned.empty();
  fact.count = unowned.size();
  fact.what = Many(fact.count, "slice has", "slices have") + " no worker: tasks wait there";
  for (std::size_t i = 0; i < std::min(unowned.size(), kMostParts); ++i) fact.parts.push_back(unowned[i]);
  return fact;
}

struct EventWords {
  AlertKind kind;
  std::array<std::string_view, 2> events;  // one, or two
  const char* one;
  const char* many;
};
constexpr EventWords kEventWords[] = {
    {AlertKind::Refused,
     {kSettleRefused, kClaimRefused},
     "settle or claim hit other rows than it should",
     "settles or claims hit other rows than they should"},
    {AlertKind::Crashes,
     {kHandlerCrashed},
     "run of a handler ended with its worker's death",
     "runs of handlers ended with their worker's death"},
    {AlertKind::WorkerLost, {kWorkerLost}, "worker was lost", "workers were lost"},
};

std::string WorkerOf(const std::string& incarnation) { return incarnation.substr(0, incarnation.rfind('.')); }

// How often each worker was lost, by the shard that has noted it.
using Losses = std::map<std::string, std::map<std::string, std::size_t>>;

// The n-th loss of a worker is one, however many of its shards note it.
bool IsAnother(const SeenEvent& loss, Losses& losses) {
  auto& noted = losses[WorkerOf(loss.what)];
  std::size_t most = 0;
  for (const auto& [shard, times] : noted) most = std::max(most, times);
  return ++noted[loss.shard] > most;
}

AlertFact EventFact(const AlertConfig& alert, const std::vector<SeenEvent>& events) {
  const EventWords& words = *std::find_if(std::begin(kEventWords), std::end(kEventWords),
                                          [&](const EventWords& one) { return one.kind == alert.kind; });
  const bool losses_meant = alert.kind == AlertKind::WorkerLost;
  AlertFact fact;
  Losses losses;
  std::vector<std::string> seen;
  for (const SeenEvent& event : events) {
    const bool meant = std::find(words.events.begin(), words.events.end(), event.kind) != words.events.end();
    if (!meant || !IsAbout(alert, event.type)) continue;
    if (losses_meant && !IsAnother(event, losses)) continue;
    if (event.ago > LookBack(alert)) continue;
    seen.push_back(losses_meant ? WorkerOf(event.what) : event.what);
    fact.newest = event.ago;
  }
  fact.count = seen.size();
  fact.holds = fact.count > alert.more_than;
  fact.what = Many(fact.count, words.one, words.many) + " within " + FormatDuration(LookBack(alert));
  const std::size_t first = seen.size() > kMostParts ? seen.size() - kMostParts : 0;
  fact.parts.assign(seen.begin() + static_cast<std::ptrdiff_t>(first), seen.end());
  return fact;
}

// `60: the last firing's task was in work`.
std::uint64_t FiringsOf(const std::string& lapsed) {
  std::uint64_t firings = 1;
  std::from_chars(lapsed.data(), lapsed.data() + lapsed.size(), firings);
  return firings;
}

// What fires late, and what will fire no more.
AlertFact ScheduleFact(const AlertConfig& alert, const std::map<std::string, Micros>& late,
                       const std::vector<SeenEvent>& events) {
  AlertFact fact;
  for (const auto& [schedule, by] : Greatest(late))
    fact.parts.push_back(schedule + ": late by " + FormatDuration(Seconds(by)));
  std::map<std::string, std::uint64_t> lapsed;
  std::uint64_t times = 0;
  for (const SeenEvent& event : events) {
    if (event.kind != kScheduleLapsed || event.ago > LookBack(alert)) continue;
    const std::uint64_t firings = FiringsOf(event.type);
    lapsed[event.what] += firings;
    times += firings;
    fact.newest = event.ago;
  }
  for (const auto& [schedule, count] : Greatest(lapsed))
    fact.parts.push_back(schedule + ": firings lapsed" +
                         (count == 1 ? "" : ", " + Many(count, "time", "times")));
  if (fact.parts.size() > kMostParts) fact.parts.resize(kMostParts);
  fact.count = late.size() + times;
  fact.holds = fact.count > alert.more_than;
  fact.what = Many(late.size(), "schedule is late", "schedules are late") + "; firings lapsed " +
              Many(times, "time", "times") + " within " + FormatDuration(LookBack(alert));
  return fact;
}

AlertFact BreakerFact(const AlertConfig& alert, const std::map<std::string, std::string>& open) {
  AlertFact fact;
  std::map<std::string, std::string> meant;
  for (const auto& [type, why] : open) {
    if (!IsAbout(alert, type)) continue;
    meant[type] = why;
    if (fact.parts.size() < kMostParts) fact.parts.push_back(type + ": " + why);
  }
  fact.count = meant.size();
  fact.holds = fact.count > 0;
  Name(meant, fact);
  fact.what = Many(fact.count, "breaker is open: its tasks wait", "breakers are open: their tasks wait");
  return fact;
}

// nullopt: that part was not looked at.
std::optional<AlertFact> WholeFact(const AlertConfig& alert, const Observation& seen) {
  switch (alert.kind) {
    case AlertKind::Failed:
      if (seen.failed) return FailedFact(alert, *seen.failed);
      break;
    case AlertKind::OldestDue:
      if (seen.late) return LateFact(alert, *seen.late);
      break;
    case AlertKind::Unowned:
      if (seen.unowned) return UnownedFact(*seen.unowned);
      break;
    case AlertKind::Unrunnable:
      if (seen.unrunnable) return UnrunnableFact(*seen.unrunnable);
      break;
    case AlertKind::Refused:
    case AlertKind::Crashes:
    case AlertKind::WorkerLost:
      if (seen.events) return EventFact(alert, *seen.events);
      break;
    case AlertKind::Breaker:
      if (seen.breakers) return BreakerFact(alert, *seen.breakers);
      break;
    case AlertKind::Schedule:
      if (seen.late_schedules && seen.events) return ScheduleFact(alert, *seen.late_schedules, *seen.events);
      break;
  }
  return std::nullopt;
}

}  // namespace

Micros LookBack(const AlertConfig& alert) {
  const Micros least = alert.kind == AlertKind::Schedule ? kBetweenSkipsTold : Micros(0);
  return std::max(alert.every, least) + 3 * AlertJudge::kLook;
}

std::optional<AlertFact> FactOf(const AlertConfig& alert, const Observation& seen) {
  auto fact = WholeFact(alert, seen);
  if (!fact || fact->holds) return fact;
  const bool by_map = alert.kind == AlertKind::OldestDue || alert.kind == AlertKind::Unrunnable;
  const bool whole = alert.kind == AlertKind::Unowned || (seen.whole && (seen.whole_due || !by_map));
  const bool unsure = alert.kind == AlertKind::OldestDue &&
                      std::any_of(seen.late_unsure.begin(), seen.late_unsure.end(),
                                  [&](const std::string& type) { return IsAbout(alert, type); });
  return whole && !unsure ? fact : std::nullopt;
}

bool HeldOnPurpose(const Config& config, const Pauses& pauses, const std::string& shard,
                   const DueGroup& group, WallTime now) {
  if (pauses.Covers(shard, group.table, group.slice, group.handler)) return true;
  const auto found = config.handlers.find(group.handler);
  if (found == config.handlers.end()) return false;
  if (found->second.hours && !ClosedBy(*found->second.hours, now).empty()) return true;
  auto band = found->second.BandOf(group.urgency);
  // What is scanned in rounds is in no band, and waits for its next round as others for their band's look.
  if (const auto& scan = found->second.scan) band = BandConfig{.every = std::max(scan->every, scan->after)};
  return band && band->every > Micros(0) && !band->IsOverdue(now - group.first_run_at);
}

SaidAlert SaidFor(const AlertConfig& alert, bool holds, SaidAlert said) {
  const bool other_kind = !said.kind.empty() && said.kind != WordOf(alert.kind);
  const bool other_tasks = !said.handler.empty() && said.handler != alert.handler;
  if (holds && (other_kind || other_tasks)) said.firing = false;
  return said;
}

AlertWord AlertJudge::Look(const std::optional<AlertFact>& fact, const SaidAlert& said, Micros every,
                           BootTime now) {
  soon_ = false;
  if (!fact) return AlertWord::Nothing;
  return fact->holds ? Hold(*fact, said, every, now) : Clear(said, now);
}

AlertWord AlertJudge::Hold(const AlertFact& fact, const SaidAlert& said, Micros every, BootTime now) {
  clear_.reset();
  const bool fresh = !held_;
  if (fresh) held_ = now;
  const bool settled = (!fresh && fact.count == count_) || now - *held_ >= kGather;
  count_ = fact.count;
  if (said.firing && !IsNews(fact, said, now)) return AlertWord::Nothing;
  if (said.fired_at && now - *said.fired_at < every) return AlertWord::Nothing;
  soon_ = !settled;
  return settled ? AlertWord::Firing : AlertWord::Nothing;
}

AlertWord AlertJudge::Clear(const SaidAlert& said, BootTime now) {
  held_.reset();
  if (!said.firing) {
    clear_.reset();
    return AlertWord::Nothing;
  }
  if (!clear_) clear_ = now;
  soon_ = now - *clear_ < kCalm;
  return soon_ ? AlertWord::Nothing : AlertWord::Over;
}

}  // namespace millrace::engine
