#include "framework/mill/admission.h"

#include <limits>

#include "framework/mill/breaker_policy.h"
#include "framework/mill/hours_policy.h"
#include "framework/mill/limit_policy.h"
#include "framework/mill/permits.h"

namespace millrace::engine {
namespace {

// A scan that found no room looks again: what can start sooner is claimed already.
constexpr Micros kSoonestRoom = std::chrono::milliseconds(20);

// How many permits there are; 0: it is not held by permits. Where nobody divides the limits permits hold all
// that need any.
std::uint32_t PermitsBy(const std::shared_ptr<const LimitShares>& shares, const std::string& type,
                        const PermitRule& rule) {
  if (!shares) return rule.concurrency;
  const auto share = shares->find(type);
  return share == shares->end() ? 0 : share->second.permits;
}

}  // namespace

bool TypeGate::Open(BootTime now, WallTime wall) const {
  return std::all_of(policies_.begin(), policies_.end(),
                     [&](const auto& policy) { return policy->Open(now, wall); });
}

bool TypeGate::Withholds() const {
  return std::any_of(policies_.begin(), policies_.end(),
                     [](const auto& policy) { return policy->Withholds(); });
}

bool TypeGate::NeedsPermit() const {
  return std::any_of(policies_.begin(), policies_.end(),
                     [](const auto& policy) { return policy->NeedsPermit(); });
}

std::size_t TypeGate::ClaimRoom(BootTime now) const {
  std::size_t room = std::numeric_limits<std::size_t>::max();
  const std::size_t waiting = waiting_.load(std::memory_order_relaxed);
  for (const auto& policy : policies_) {
    if (room == 0) {
      policy->Unwanted();
    } else {
      room = std::min(room, policy->ClaimRoom(now, waiting));
    }
  }
  return room;
}

std::size_t TypeGate::TakeStarts(std::size_t most, BootTime now) {
  std::vector<std::size_t> taken;
  for (const auto& policy : policies_) {
    taken.push_back(most == 0 ? 0 : policy->Take(most, now));
    most = taken.back();
  }
  for (std::size_t i = 0; i < taken.size(); ++i) {
    if (taken[i] > most) policies_[i]->GiveBack(taken[i] - most);
  }
  if (most == 0) refused_.store(true, std::memory_order_relaxed);
  return most;
}

void TypeGate::GiveBackStarts(std::size_t starts) {
  for (const auto& policy : policies_) policy->GiveBack(starts);
}

void TypeGate::HasPermit(bool given_back) const {
  for (const auto& policy : policies_) policy->HasPermit(given_back);
}

BootTime TypeGate::Next(BootTime now) const {
  BootTime next = now;
  for (const auto& policy : policies_) next = std::max(next, policy->Next(now));
  return next;
}

BootTime TypeGate::NextStart(BootTime now) const {
  BootTime next = now;
  for (const auto& policy : policies_) next = std::max(next, policy->NextStart(now));
  return next;
}

bool TypeGate::StartsNow(BootTime now) const {
  return std::all_of(policies_.begin(), policies_.end(),
                     [&](const auto& policy) { return policy->StartsNow(now); });
}

// Nothing is asked for: whoever only tells of it has no tasks.
std::string TypeGate::HeldBy(BootTime now, WallTime wall) const {
  for (const auto& policy : policies_) {
    if (!policy->Open(now, wall)) return policy->Name();
  }
  for (const auto& policy : policies_) {
    if (policy->Next(now) > now) return policy->Name();
  }
  return "";
}

void TypeGate::Ended(const StartEnd& end, BootTime now) {
  for (const auto& policy : policies_) policy->Ended(end, now);
  TellStartsAgain();
}

void TypeGate::TellStartsAgain() {
  if (starts_again_ && refused_.exchange(false, std::memory_order_relaxed)) starts_again_->Tell(type_);
}

// Each kind of policy adds its own; one keeps its state where nothing of it has changed, and a gate where
// none of its policies has. What runs under a gate that goes is counted by that still; what is queued under
// it goes back, and comes again under the one that counts from now on.
void Admission::Follow(std::shared_ptr<const Config> config) {
  Gates before;
  {
    MutexLock lock(mutex_);
    before = std::exchange(gates_, {});
    std::erase_if(hours_, [&](const auto& entry) { return !config->HandlerFor(entry.first).hours; });
    few_ = permits_ == nullptr ? PermitRules{} : PermitRulesOf(*config);
    std::erase_if(of_few_, [this](const auto& entry) { return !few_.contains(entry.first); });
    DropLimits(*config);
    breakers_ = BreakersOf(*config, breakers_);
    for (const auto& [type, handler] : config->handlers) {
      StartPolicies policies;
      if (handler.hours) policies.push_back(HoursOf(type, *handler.hours));
      if (handler.limit) policies.push_back(LimitOf(type, *handler.limit));
      if (few_.contains(type)) policies.push_back(PermitsOf(type));
      if (handler.breaker) policies.push_back(breakers_.at(type));
      if (policies.empty()) continue;
      const auto known = before.find(type);
      const bool same = known != before.end() && known->second->policies() == policies;
      gates_[type] =
          same ? known->second : std::make_shared<TypeGate>(type, std::move(policies), starts_again_);
    }
    any_gates_.store(!gates_.empty(), std::memory_order_release);
    TellPermits(shares_);
    if (gates_ != before) {
      version_.fetch_add(1, std::memory_order_release);
      closed_ = true;
    }
  }
  for (const auto& [type, gate] : before) gate->TellStartsAgain();
}

void Admission::DropLimits(const Config& config) {
  std::erase_if(limits_, [&](const auto& entry) {
    const bool gone = !config.HandlerFor(entry.first).limit;
    if (!gone) return false;
    entry.second->Follow(LimitConfig{}, std::nullopt, clock_.Now());
    former_limits_[entry.first] = entry.second;
    return true;
  });
}

std::shared_ptr<StartPolicy> Admission::HoursOf(const std::string& type, const HoursConfig& hours) {
  std::shared_ptr<HoursPolicy>& policy = hours_[type];
  if (!policy || policy->config() != hours) policy = std::make_shared<HoursPolicy>(hours, clock_);
  return policy;
}

std::shared_ptr<StartPolicy> Admission::PermitsOf(const std::string& type) {
  std::shared_ptr<StartPolicy>& policy = of_few_[type];
  if (!policy) policy = permits_->PolicyOf(type);
  return policy;
}

// Where nobody divides a limit it is not known who else runs the type.
void Admission::TellPermits(const std::shared_ptr<const LimitShares>& former) {
  if (permits_ == nullptr) return;
  PermitRules held;
  for (const auto& [type, rule] : few_) {
    const std::uint32_t now = PermitsBy(shares_, type, rule);
    const std::uint32_t permits = now > 0 ? now : PermitsBy(former, type, rule);
    if (permits > 0) held.emplace(type, PermitRule{permits, rule.here});
  }
  permits_->Follow(held);
}

std::shared_ptr<StartPolicy> Admission::LimitOf(const std::string& type, const LimitConfig& limit) {
  std::shared_ptr<LimitPolicy>& policy = limits_[type];
  if (const auto former = former_limits_.find(type); !policy && former != former_limits_.end()) {
    policy = former->second.lock();
    former_limits_.erase(former);
  }
  if (policy) {
    policy->Follow(limit, ShareOf(type), clock_.Now());
  } else {
    policy = std::make_shared<LimitPolicy>(limit, ShareOf(type), clock_.Now());
  }
  return policy;
}

std::optional<LimitShare> Admission::ShareOf(const std::string& type) const {
  if (!shares_) return std::nullopt;
  const auto share = shares_->find(type);
  return share == shares_->end() ? LimitShare{} : share->second;
}

void Admission::FollowShares(std::shared_ptr<const LimitShares> shares) {
  std::vector<std::shared_ptr<TypeGate>> gates;
  {
    MutexLock lock(mutex_);
    shares_.swap(shares);
    // Not for a moment may a type be held by neither: permits come before places go, and go after they come.
    if (!few_.empty()) TellPermits(shares);
    for (const auto& [type, policy] : limits_) {
      policy->Follow(ShareOf(type), clock_.Now());
      gates.push_back(gates_.at(type));
    }
    TellPermits(shares_);
  }
  for (const auto& gate : gates) gate->TellStartsAgain();
}

std::map<std::string, LimitView> Admission::Limits() const {
  const BootTime now = clock_.Now();
  MutexLock lock(mutex_);
  std::map<std::string, LimitView> views;
  for (const auto& [type, policy] : limits_) views[type] = policy->View(now, gates_.at(type)->Waiting());
  return views;
}

std::map<std::string, std::shared_ptr<BreakerPolicy>> Admission::Breakers() const {
  MutexLock lock(mutex_);
  return breakers_;
}

std::shared_ptr<TypeGate> Admission::Of(const std::string& type) const {
  if (!any_gates_.load(std::memory_order_acquire)) return nullptr;
  MutexLock lock(mutex_);
  const auto gate = gates_.find(type);
  return gate == gates_.end() ? nullptr : gate->second;
}

bool Admission::Open(const std::string& type) const {
  const auto gate = Of(type);
  return !gate || gate->Open(clock_.Now(), clock_.WallNow());
}

std::string Admission::OutsideHours(const std::string& type) const {
  const WallTime now = clock_.WallNow();
  MutexLock lock(mutex_);
  const auto policy = hours_.find(type);
  return policy == hours_.end() ? "" : ClosedBy(policy->second->config(), now);
}

std::map<std::string, std::string> Admission::OutsideHours() const {
  const WallTime now = clock_.WallNow();
  MutexLock lock(mutex_);
  std::map<std::string, std::string> closed;
  for (const auto& [type, policy] : hours_) {
    if (std::string why = ClosedBy(policy->config(), now); !why.empty()) closed[type] = std::move(why);
  }
  return closed;
}

std::size_t Admission::Room(const std::string& type) const {
  const auto gate = Of(type);
  return gate ? gate->ClaimRoom(clock_.Now()) : std::numeric_limits<std::size_t>::max();
}

bool Admission::StartsNow(const std::string& type) const {
  const BootTime now = clock_.Now();
  const auto gate = Of(type);
  return !gate || (gate->ClaimRoom(now) > 0 && gate->StartsNow(now));
}

BootTime Admission::Next(const std::string& type) const {
  const BootTime now = clock_.Now();
  const auto gate = Of(type);
  return gate ? std::max(gate->Next(now), now + kSoonestRoom) : now;
}

bool Admission::TakeClosed() {
  const BootTime now = clock_.Now();
  const WallTime wall = clock_.WallNow();
  MutexLock lock(mutex_);
  bool closed = std::exchange(closed_, false);
  for (const auto& [type, gate] : gates_) {
    const bool open = gate->Open(now, wall) && !gate->Withholds();
    const bool was_open = std::exchange(open_.try_emplace(type, true).first->second, open);
    // A claim that was under way comes when what was queued has gone back.
    closed = closed || (!open && (was_open || gate->Waiting() > 0));
  }
  return closed;
}

}  // namespace millrace::engine
