#include "coordinator/testing/run_checks.h"

#include <algorithm>
#include <array>

#include "coordinator/testing/simulated_work.h"
#include "framework/policy/token_bucket.h"

namespace millrace::engine {
namespace {

// A worker that goes on after it was stopped looks at its clocks within its watch's tick.
constexpr Micros kToLook = std::chrono::milliseconds(200);
// What is documented of the red button.
constexpr Micros kPauseInForce = std::chrono::seconds(2);
// What runs without a permit ends once its worker hears that it was marked dead.
constexpr Micros kToHear = std::chrono::milliseconds(2'500);
// A write that binds a permit may have been carried out so long before its reply is known.
constexpr Micros kReply = std::chrono::seconds(2);
// Beats that a failover brings back to numbers seen before may let a live worker be marked dead.
constexpr Micros kLeftAlone = 2 * kSimulatedLease;
// Whoever is cut off from ZooKeeper when `assign` is deleted by hand, or a limit is changed, has its share
// still.
constexpr Micros kUntilHeard = std::chrono::seconds(15);
// Over which the starts of a rate are counted; the longer the less its bursts matter.
constexpr std::array<Micros, 2> kSpans{std::chrono::seconds(10), std::chrono::seconds(30)};
// A share's burst is of one start at least; and a thread may be held up between a start and its first line.
constexpr double kMoreAtOnce = 6;

// Zero: any number, but for a burst.
LimitConfig LaxerOf(const LimitConfig& a, const LimitConfig& b) {
  const bool bounded = a.concurrency > 0 && b.concurrency > 0;
  const bool paced = a.rate > 0 && b.rate > 0;
  return {.rate = paced ? std::max(a.rate, b.rate) : 0,
          .burst = std::max(a.burst, b.burst),
          .concurrency = bounded ? std::max(a.concurrency, b.concurrency) : 0};
}

}  // namespace

std::uint64_t RunChecks::Began(Run run) {
  std::erase_if(runs_, [this](const auto& entry) { return entry.second.returned && !Holds(entry.second); });
  const std::uint64_t id = ++last_;
  const Run& mine = (runs_[id] = {std::move(run)}).run;
  CheckPauses(mine);
  CheckAlone(mine);
  if (mine.limit.concurrency > 0) CheckAtOnce(mine);
  if (mine.limit.rate > 0) CheckRate(mine);
  return id;
}

void RunChecks::CheckPauses(const Run& mine) {
  const BootTime well = std::max(ensemble_.WellSince(), mine.process->WellSince());
  const std::string& shard = databases_.at(mine.shard).checked().name();
  for (const std::string& what : {std::string("cluster"), "shard:" + shard, "handler:" + mine.type}) {
    const Micros stood = timeline_.Now() - std::max(ensemble_.MadeAt("/control/pause/" + what), well);
    if (stood <= kPauseInForce) continue;
    journal_.Violation("task " + ToString(mine.task) + " of shard " + shard + " begins at " +
                       mine.process->name + ", though " + what + " has been paused for " +
                       std::to_string(stood.count() / 1000) + " ms");
  }
}

void RunChecks::CheckAlone(const Run& mine) {
  const CheckedShard& shard = databases_.at(mine.shard).checked();
  const auto over = [&](const Run& run) {
    return !shard.shard().IsAlive(run.life) || shard.LostClaim(run.task, run.attempt, run.life);
  };
  if (over(mine)) return;  // stopped between the check and its first line
  for (const auto& [number, other] : runs_) {
    const Run& run = other.run;
    if (&run == &mine || run.task.id != mine.task.id || run.shard != mine.shard || run.task != mine.task)
      continue;
    if (other.returned || other.given_up || over(run)) continue;
    journal_.Violation("attempt " + std::to_string(mine.attempt) + " of task " + ToString(mine.task) +
                       " of shard " + std::to_string(mine.shard) + " begins at " + mine.process->name +
                       " beside attempt " + std::to_string(run.attempt) + " at " + run.process->name);
  }
}

void RunChecks::LimitIs(const std::string& type, const LimitConfig& limit) {
  std::vector<Limit>& limits = limits_[type];
  if (!limits.empty() && limits.back().limit == limit) return;
  if (!limits.empty()) limits.back().until = timeline_.Now();
  limits.push_back({limit});
}

LimitConfig RunChecks::Laxest(const std::string& type, BootTime from, const LimitConfig& known) const {
  LimitConfig laxest = known;
  const auto limits = limits_.find(type);
  if (limits == limits_.end()) return laxest;
  for (const Limit& each : limits->second) {
    if (each.until >= from - kUntilHeard) laxest = LaxerOf(laxest, each.limit);
  }
  return laxest;
}

void RunChecks::CheckAtOnce(const Run& mine) {
  ++limited_;
  LimitConfig limit = Laxest(mine.type, timeline_.Now(), mine.limit);
  std::size_t all = 0;
  std::size_t counted = 0;
  std::string names;
  for (const auto& [number, other] : runs_) {
    if (other.run.type != mine.type || !Holds(other)) continue;
    ++all;
    if (IsExcused(other)) continue;
    ++counted;
    limit = LaxerOf(limit, other.run.limit);
    names += (names.empty() ? "" : ", ") + ToString(other.run.task) + " of shard " +
             std::to_string(other.run.shard) + " by " + other.run.process->name +
             (other.returned ? " (not settled)" : "");
  }
  if (limit.concurrency == 0) return;
  if (all > limit.concurrency) ++overlaps_;
  const bool forgotten = forgotten_ != BootTime{} && timeline_.Now() - forgotten_ < kUntilHeard;
  if (counted > limit.concurrency && !forgotten) {
    journal_.Violation("of " + mine.type + ", which is limited to " + std::to_string(limit.concurrency) +
                       " at once, these run: " + names);
  }
}

// In each span that ends with this start.
void RunChecks::CheckRate(const Run& mine) {
  ++paced_;
  const BootTime now = timeline_.Now();
  std::deque<BootTime>& starts = starts_[mine.type];
  starts.push_back(now);
  while (now - starts.front() > kSpans.back()) starts.pop_front();
  for (const Micros span : kSpans) {
    if (LostSharesSince(now - span)) return;
    const auto first = std::lower_bound(starts.begin(), starts.end(), now - span);
    const auto count = static_cast<double>(starts.end() - first);
    const LimitConfig limit = Laxest(mine.type, now - span, mine.limit);
    if (limit.rate <= 0) return;
    const double burst = limit.burst > 0 ? limit.burst : DefaultBurst(limit.rate);
    const double most = std::chrono::duration<double>(span).count() * limit.rate + burst + kMoreAtOnce;
    if (count <= most) continue;
    journal_.Violation("of " + mine.type + ", whose rate is " + std::to_string(limit.rate) +
                       "/s with a burst of " + std::to_string(burst) + ", " + std::to_string(count) +
                       " start within " + std::to_string(span.count() / 1'000'000) + " s");
    return;
  }
}

void RunChecks::Returned(std::uint64_t run) {
  if (const auto entry = runs_.find(run); entry != runs_.end()) entry->second.returned = true;
}

void RunChecks::GivenUp(std::uint64_t run) {
  if (const auto entry = runs_.find(run); entry != runs_.end()) entry->second.given_up = true;
}

void RunChecks::Died(const ModelledProcess& process) {
  std::erase_if(runs_, [&](const auto& entry) { return entry.second.run.process == &process; });
}

bool RunChecks::Alive(const std::string& home) const {
  return std::any_of(databases_.begin(), databases_.end(),
                     [&](const ModelledDatabase& database) { return database.shard().IsAlive(home); });
}

// A permit that was lost with its holder's life in the home is free, whatever its task's row says.
bool RunChecks::Holds(const Entry& entry) const {
  if (!entry.returned) return true;
  const Run& run = entry.run;
  const CompactShard& shard = databases_.at(run.shard).shard();
  const CompactRow* row = shard.Find(run.task);
  const bool runs = row != nullptr && row->state == TaskState::Running && row->claimed_by == run.life &&
                    row->attempt == run.attempt;
  return runs && shard.IsAlive(run.life) && Alive(run.home);
}

// Nobody knows what each may have: its page was deleted by hand, or a database has forgotten its life.
bool RunChecks::LostSharesSince(BootTime from) const {
  if (forgotten_ != BootTime{} && forgotten_ + kUntilHeard >= from) return true;
  return std::any_of(databases_.begin(), databases_.end(), [&](const ModelledDatabase& database) {
    const BootTime at = database.checked().FailedOver();
    return at != BootTime{} && at + kLeftAlone >= from;
  });
}

bool RunChecks::FailedOver(const Run& run) const {
  return std::any_of(databases_.begin(), databases_.end(), [&](const ModelledDatabase& database) {
    const BootTime at = database.checked().FailedOver();
    return at != BootTime{} && (at >= run.handed - kReply || timeline_.Now() - at < kLeftAlone);
  });
}

bool RunChecks::IsExcused(const Entry& entry) const {
  const auto& threads = entry.run.process->threads;
  const BootTime watched = threads[static_cast<std::size_t>(ThreadName::Watch)].held_until;
  const BootTime now = timeline_.Now();
  if (entry.given_up || now - watched < (entry.run.home.empty() ? kToHear : kToLook)) return true;
  const BootTime ran = threads[static_cast<std::size_t>(entry.run.thread)].held_until;
  const bool deaf = now - ran < kToLook && !entry.run.home.empty() && !Alive(entry.run.home);
  return deaf || FailedOver(entry.run);
}

}  // namespace millrace::engine
