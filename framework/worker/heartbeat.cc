#include "framework/worker/heartbeat.h"

#include "framework/base/log.h"

namespace millrace {
namespace {

constexpr int kBeatsPerLease = 5;

}  // namespace

Heartbeat::Heartbeat(const Clock& clock, std::unique_ptr<IncarnationStore> store, std::string address,
                     Incarnation self, FlightRecorder& recorder, DeadRecorders& dead_recorders, Events events)
    : clock_(clock),
      store_(std::move(store)),
      address_(std::move(address)),
      self_(std::move(self)),
      recorder_(recorder),
      dead_recorders_(dead_recorders),
      events_(std::move(events)),
      watch_(2 * self_.lease / kBeatsPerLease),
      random_(Random::FromSystem()) {}

void Heartbeat::Start() {
  thread_ = Thread("beat", [this] { Run(); });
}

void Heartbeat::Stop(bool retire) {
  if (retire) retire_.store(true);
  stopping_.store(true);
  stop_.Notify();
  thread_.Join();
}

std::shared_ptr<const std::set<std::string>> Heartbeat::LivePeers() const {
  MutexLock lock(mutex_);
  return live_;
}

void Heartbeat::Run() {
  const Micros interval = self_.lease / kBeatsPerLease;
  while (!stopping_.load()) {
    const BootTime began = clock_.Now();
    if (standing_ ? Renew() : Register()) {
      ChargeTheDead();
      WatchPeers();
    }
    // A renewal that had to wait is followed the sooner by the next.
    const Micros left = interval - (clock_.Now() - began);
    stop_.WaitFor(std::max(left, interval / 4));
  }
  if (standing_ && retire_.load()) {
    const auto retired = store_->Retire(standing_->incarnation());
    if (!retired) {
      LogWarning("the worker could not sign off; others wait for its lease to run out",
                 {{"store", address_}, {"error", retired.error().message}});
    }
    standing_->MarkDead();
  }
}

bool Heartbeat::Register() {
  const std::string prefix = self_.worker.substr(0, 50) + ".";
  self_.id = prefix + random_.Hex(12);
  const BootTime sent = clock_.Now();
  const Status registered = store_->Register(self_);
  if (!registered) {
    if (!reported_) {
      LogWarning("the worker can't register; it will be tried until it succeeds",
                 {{"store", address_}, {"error", registered.error().message}});
      reported_ = true;
    }
    return false;
  }
  reported_ = false;
  recorder_.NoteLife(address_, self_.id);
  standing_ = std::make_shared<Standing>(self_.id, self_.lease, sent);
  LogInfo("worker registered", {{"store", address_}, {"incarnation", self_.id}});
  events_.born(standing_);
  return true;
}

bool Heartbeat::Renew() {
  const BootTime sent = clock_.Now();
  const auto alive = store_->Renew(standing_->incarnation());
  if (!alive) {
    if (!reported_) {
      LogWarning("the beat failed; nothing new is started until it succeeds",
                 {{"store", address_}, {"error", alive.error().message}});
      reported_ = true;
    }
    return false;
  }
  if (!*alive) {
    LogError("this worker was marked dead: its running tasks are others' now, it registers anew",
             {{"store", address_}, {"incarnation", standing_->incarnation()}});
    standing_->MarkDead();
    events_.died(standing_);
    standing_.reset();
    return Register();
  }
  if (reported_) LogInfo("the beat succeeds again", {{"store", address_}});
  reported_ = false;
  standing_->Renewed(sent);
  events_.beat(standing_);
  return true;
}

void Heartbeat::WatchPeers() {
  const auto peers = store_->Peers();
  if (!peers) return;
  bool any_dead = false;
  auto live = std::make_shared<std::set<std::string>>();
  for (const PeerBeat& peer : *peers) live->insert(peer.incarnation.id);
  for (const PeerBeat& peer : watch_.Observe(clock_.Now(), standing_->incarnation(), *peers)) {
    const auto marked = store_->MarkDead(peer.incarnation.id, peer.beat);
    if (!marked || !*marked) continue;
    marked_dead_.fetch_add(1);
    any_dead = true;
    live->erase(peer.incarnation.id);
    LogWarning("worker marked dead: its beat stood still for its whole lease",
               {{"store", address_}, {"incarnation", peer.incarnation.id}, {"host", peer.incarnation.host}});
  }
  {
    MutexLock lock(mutex_);
    live_ = std::move(live);
  }
  if (any_dead) events_.buried();
}

void Heartbeat::ChargeTheDead() {
  for (const Burial& burial : dead_recorders_.For(address_)) {
    if (Charge(burial)) dead_recorders_.Done(burial);
  }
}

bool Heartbeat::Charge(const Burial& burial) {
  const auto charged = store_->ChargeCrashes(burial.incarnation, burial.crashes);
  if (!charged) return false;
  const auto retired = store_->Retire(burial.incarnation);
  if (!retired) return false;
  LogWarning("a worker's process on this host has died",
             {{"store", address_}, {"incarnation", burial.incarnation}, {"handlers_running", *charged}});
  {
    MutexLock lock(mutex_);
    if (live_) {
      auto live = std::make_shared<std::set<std::string>>(*live_);
      live->erase(burial.incarnation);
      live_ = std::move(live);
    }
  }
  events_.buried();
  return true;
}

}  // namespace millrace
