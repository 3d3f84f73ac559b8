#include "framework/worker/heartbeat.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr int kBeatsPerLease = 5;

}  // namespace

Heartbeat::Heartbeat(const Clock& clock, std::unique_ptr<IncarnationStore> store, std::string address,
                     Incarnation self, const LiveEngine& engine, FlightRecorder& recorder,
                     Counter& marked_dead, Events events)
    : clock_(clock),
      store_(std::move(store)),
      address_(std::move(address)),
      self_(std::move(self)),
      engine_(engine),
      recorder_(recorder),
      marked_dead_(marked_dead),
      events_(std::move(events)),
      random_(Random::FromSystem()) {}

Status Heartbeat::Start() {
  return thread_.Start("beat", [this] { Run(); });
}

void Heartbeat::RequestStop(bool retire) {
  if (retire) retire_.store(true);
  stopping_.store(true);
  wake_.Notify();
}

void Heartbeat::Stop(bool retire) {
  RequestStop(retire);
  thread_.Join();
}

std::shared_ptr<const std::set<std::string>> Heartbeat::LivePeers() const {
  MutexLock lock(mutex_);
  return live_;
}

std::vector<Incarnation> Heartbeat::Peers() const {
  MutexLock lock(mutex_);
  return peers_;
}

std::string Heartbeat::Trouble() const {
  MutexLock lock(mutex_);
  return trouble_;
}

void Heartbeat::Run() {
  while (!stopping_.load()) {
    const BootTime began = clock_.Now();
    if (lease_ ? Renew() : Register()) WatchPeers();
    // A renewal that had to wait is followed the sooner by the next.
    const Micros interval = (lease_ ? self_.lease : engine_.Get().lease) / kBeatsPerLease;
    const Micros left = interval - (clock_.Now() - began);
    wake_.WaitFor(std::max(left, interval / 4));
  }
  if (lease_ && retire_.load()) {
    const auto retired = store_->Retire(lease_->incarnation());
    if (!retired) {
      LogWarning("the worker could not sign off; others wait for its lease to run out",
                 {{"store", address_}, {"error", retired.error().message}});
    }
    lease_->MarkDead();
  }
}

// Logs the first failure of a row.
bool Heartbeat::Failed(const char* event, const std::string& error) {
  MutexLock lock(mutex_);
  if (trouble_.empty()) LogWarning(event, {{"store", address_}, {"error", error}});
  trouble_ = error.empty() ? "unknown" : error;
  return false;
}

bool Heartbeat::Register() {
  const std::string prefix = self_.worker.substr(0, 50) + ".";
  self_.id = prefix + random_.Hex(12);
  self_.lease = engine_.Get().lease;
  const BootTime sent = clock_.Now();
  const Status registered = store_->Register(self_);
  if (!registered) {
    return Failed("the worker can't register; it will be tried until it succeeds",
                  registered.error().message);
  }
  {
    MutexLock lock(mutex_);
    trouble_.clear();
  }
  watch_ = PeerWatch(2 * self_.lease / kBeatsPerLease);
  recorder_.NoteLife(address_, self_.id);
  lease_ = std::make_shared<Lease>(self_.id, self_.lease, sent);
  LogInfo("worker registered", {{"store", address_}, {"incarnation", self_.id}});
  events_.born(lease_);
  return true;
}

bool Heartbeat::Renew() {
  const BootTime sent = clock_.Now();
  const auto alive = store_->Renew(lease_->incarnation());
  if (!alive) {
    return Failed("the beat failed; nothing new is started until it succeeds", alive.error().message);
  }
  if (!*alive) return BeginAnew();
  {
    MutexLock lock(mutex_);
    if (!trouble_.empty()) {
      LogInfo("the beat succeeds again", {{"store", address_}});
      lease_->DoubtWhatRuns();
    }
    trouble_.clear();
  }
  lease_->Renewed(sent);
  events_.beat(lease_);
  return true;
}

bool Heartbeat::BeginAnew() {
  if (lease_->Alive()) {
    LogError("this worker was marked dead: its running tasks are others' now, it registers anew",
             {{"store", address_}, {"incarnation", lease_->incarnation()}});
    lease_->MarkDead();
    events_.died(lease_);
  }
  // Whoever marks a life dead ends its row and its beat together. Where somebody has ended one of them by
  // hand the other must not stand: the row would keep the tasks of this life from being rescued.
  const auto ended = store_->Retire(lease_->incarnation());
  if (!ended) return Failed("the worker's former life can't be ended", ended.error().message);
  lease_.reset();
  return Register();
}

void Heartbeat::WatchPeers() {
  const auto peers = store_->Peers();
  if (!peers) return;
  std::vector<Incarnation> alive;
  auto live = std::make_shared<std::set<std::string>>();
  for (const PeerBeat& peer : *peers) live->insert(peer.incarnation.id);
  for (const PeerBeat& peer : watch_.Observe(clock_.Now(), lease_->incarnation(), *peers)) {
    const auto marked = store_->MarkDead(peer.incarnation.id, peer.beat);
    if (!marked || !*marked) continue;
    marked_dead_.Add();
    live->erase(peer.incarnation.id);
    LogWarning(peer.beat ? "worker marked dead: its beat stood still for its whole lease"
                         : "worker marked dead: its beat was missing for its whole lease",
               {{"store", address_}, {"incarnation", peer.incarnation.id}, {"host", peer.incarnation.host}});
  }
  for (const PeerBeat& peer : *peers) {
    if (live->contains(peer.incarnation.id)) alive.push_back(peer.incarnation);
  }
  bool somebody_gone = false;
  {
    MutexLock lock(mutex_);
    const auto known = live_;
    somebody_gone = known && std::any_of(known->begin(), known->end(),
                                         [&](const std::string& id) { return !live->contains(id); });
    live_ = std::move(live);
    peers_ = std::move(alive);
  }
  if (somebody_gone) events_.buried();
}

void Heartbeat::Buried(const std::string& incarnation) {
  {
    MutexLock lock(mutex_);
    if (live_) {
      auto live = std::make_shared<std::set<std::string>>(*live_);
      live->erase(incarnation);
      live_ = std::move(live);
    }
  }
  events_.buried();
}

}  // namespace millrace::engine
