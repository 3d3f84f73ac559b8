#include "framework/worker/mill_set.h"

#include <algorithm>
#include <boost/algorithm/string/join.hpp>
#include <set>

#include "framework/base/log.h"

namespace millrace::engine {

Status MillSet::Start() {
  Follow();
  return begun_;
}

bool MillSet::Follow() {
  const StoresByShard wanted = parts_.control.Shards();
  std::vector<MillPtr> gone;
  std::vector<MillPtr> fresh;
  std::set<std::string> addresses;
  {
    MutexLock lock(mutex_);
    std::erase_if(serving_, [&](const auto& entry) {
      const auto store = wanted.find(entry.first);
      if (store != wanted.end() && store->second == entry.second->store()) return false;
      gone.push_back(entry.second);
      return true;
    });
    for (const auto& [name, store] : wanted) {
      if (serving_.contains(name)) continue;
      fresh.push_back(std::make_shared<ShardDriver>(parts_, name, store));
      serving_.emplace(name, fresh.back());
      all_.push_back(fresh.back());
    }
    for (const auto& [name, mill] : serving_) addresses.insert(mill->store()->Describe());
  }
  if (!fresh.empty() || !gone.empty()) parts_.dead_recorders.Serve(std::move(addresses));
  for (const MillPtr& mill : gone) Retire(mill);
  const Status begun = Begin(fresh);
  if (!begun && begun_) {
    LogError("a shard can't be served yet; it is tried again until it can",
             {{"error", begun.error().message}});
  }
  begun_ = begun;
  bool changed = !gone.empty();
  for (const MillPtr& mill : All()) changed = mill->Follow() || changed;
  return changed;
}

// One that can't be started is forgotten, and so tried anew with the next look at the shards.
Status MillSet::Begin(const std::vector<MillPtr>& fresh) {
  Status begun;
  for (const MillPtr& mill : fresh) {
    Status started = mill->Start();
    if (started) continue;
    begun = std::move(started);
    MutexLock lock(mutex_);
    std::erase_if(serving_, [&](const auto& entry) { return entry.second == mill; });
    std::erase(all_, mill);
  }
  return begun;
}

void MillSet::Retire(const MillPtr& mill) {
  LogInfo("a shard is served no more; what runs there is finished", {{"store", mill->store()->Describe()}});
  mill->Retire();
  Retired& retired = retired_.emplace_back();
  retired.mill = mill;
  retired.stops = {parts_.mill.clock.Now(), parts_.mill.engine.Get().stop_timeout};
}

// On a thread of its own: a database that does not answer holds up the ends of its sessions.
void MillSet::BeginEnd(Retired& retired) {
  if (!retired.mill->Empty()) {
    LogWarning("a shard that is served no more ends with tasks in hand; others rescue them",
               {{"store", retired.mill->store()->Describe()}});
  }
  // Where no thread can be had it is tried again with the next look.
  (void)retired.ending.Start("retire", [&retired] {
    retired.mill->End();
    retired.ended.store(true);
  });
}

// The same database may have a new mill already, which rescues and starts what this one leaves: so what hears
// the request to stop is to be settled before.
void MillSet::EndRetired(const std::function<bool(const Lease&)>& is_needed) {
  const BootTime now = parts_.mill.clock.Now();
  for (Retired& retired : retired_) {
    ShardDriver& mill = *retired.mill;
    mill.GiveBackParked();
    if (retired.ending.Started()) continue;
    if (retired.stops.Asks(now)) mill.AskToStop();
    if (mill.Empty()) {
      const std::shared_ptr<Lease> life = mill.Life();
      if (!life || !is_needed(*life)) BeginEnd(retired);
    } else if (retired.stops.Over(now)) {
      BeginEnd(retired);
    }
  }
  std::erase_if(retired_, [this](const Retired& retired) {
    if (!retired.ended.load()) return false;
    MutexLock lock(mutex_);
    std::erase(all_, retired.mill);
    return true;
  });
}

bool MillSet::NothingInHand() const {
  const std::vector<MillPtr> mills = All();
  return std::all_of(mills.begin(), mills.end(), [](const MillPtr& mill) { return mill->NothingInHand(); });
}

bool MillSet::AllEmpty() const {
  const std::vector<MillPtr> mills = All();
  return std::all_of(mills.begin(), mills.end(), [](const MillPtr& mill) { return mill->Empty(); });
}

std::optional<IdleSpan> MillSet::Idleness() const {
  const std::vector<MillPtr> mills = All();
  if (!retired_.empty() || mills.empty()) return std::nullopt;
  IdleSpan all{BootTime{}, BootTime::max()};
  for (const MillPtr& mill : mills) {
    if (!mill->Idle()) return std::nullopt;
    const IdleSpan own = mill->Idleness();
    all = {std::max(all.since, own.since), std::min(all.looked, own.looked)};
  }
  return all;
}

void MillSet::TellLeftAside() const {
  std::set<std::string> left;
  for (const MillPtr& mill : All()) left.merge(mill->LeftAside());
  if (left.empty()) return;
  LogWarning("due tasks are left behind that may not run now",
             {{"left", boost::algorithm::join(left, "; ")}});
}

std::set<std::string> MillSet::HeldBack() const {
  std::set<std::string> held;
  for (const MillPtr& mill : All()) held.merge(mill->HeldBack());
  return held;
}

std::vector<MillSet::MillPtr> MillSet::All() const {
  MutexLock lock(mutex_);
  return all_;
}

std::vector<std::string> MillSet::PauseNames() const {
  std::set<std::string> paused;
  for (const MillPtr& mill : All()) {
    for (std::string& name : mill->PauseNames()) paused.insert(std::move(name));
  }
  return {paused.begin(), paused.end()};
}

void MillSet::Rung(const ShardRing& ring) const {
  MillPtr mill;
  {
    MutexLock lock(mutex_);
    const auto found = serving_.find(ring.shard);
    if (found != serving_.end()) mill = found->second;
  }
  if (mill) mill->Rung(ring.ring);
}

void MillSet::RequestEnd() {
  for (const MillPtr& mill : All()) mill->RequestEnd();
}

void MillSet::End() {
  RequestEnd();
  for (Retired& retired : retired_) retired.ending.Join();
  for (const MillPtr& mill : All()) mill->End();
}

}  // namespace millrace::engine
