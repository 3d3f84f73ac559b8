#include "framework/mill/beat.h"

#include <algorithm>

#include "framework/base/log.h"

namespace millrace::engine {
namespace {

constexpr int kBeatsPerLease = 5;

}  // namespace

std::vector<PeerBeat> PeerWatch::Observe(BootTime now, const std::string& self,
                                         std::span<const PeerBeat> peers) {
  if (now - last_ > gap_ || WentBack(self, peers)) sightings_.clear();
  last_ = now;
  std::map<std::string, Sighting> seen;
  std::vector<PeerBeat> dead;
  for (const PeerBeat& peer : peers) {
    if (peer.incarnation.id == self) continue;
    const auto known = sightings_.find(peer.incarnation.id);
    const bool still = known != sightings_.end() && known->second.beat == peer.beat;
    const Sighting sighting = still ? known->second : Sighting{peer.beat, now};
    if (now - sighting.since >= peer.incarnation.lease && still) dead.push_back(peer);
    seen.emplace(peer.incarnation.id, sighting);
  }
  sightings_ = std::move(seen);
  return dead;
}

// Whether the database has lost commits: one's own beat, just renewed, is no higher than it was. Others' may
// have gone back unseen and come to the same number again.
bool PeerWatch::WentBack(const std::string& self, std::span<const PeerBeat> peers) {
  const auto own = std::find_if(peers.begin(), peers.end(),
                                [&](const PeerBeat& peer) { return peer.incarnation.id == self; });
  if (own == peers.end() || !own->beat) return false;
  const bool back = own_beat_ && *own->beat <= *own_beat_;
  own_beat_ = own->beat;
  return back;
}

void Beat::Stop(bool retire) {
  if (retire) retire_.store(true);
  stopping_.store(true);
  port_.Wake();
}

Step<> Beat::Run() {
  while (!stopping_.load()) {
    const BootTime began = parts_.clock.Now();
    bool beats = false;
    if (!lease_) {
      beats = co_await Register();
    } else if (lease_->Alive()) {
      beats = co_await Renew();
    } else {
      beats = co_await BeginAnew();
    }
    if (beats) co_await WatchPeers();
    // A renewal that had to wait is followed the sooner by the next.
    const Micros interval = (lease_ ? parts_.self.lease : parts_.engine.Get().lease) / kBeatsPerLease;
    const Micros left = interval - (parts_.clock.Now() - began);
    if (!stopping_.load()) co_await port_.Rest(std::max(left, interval / 4));
  }
  if (lease_ && retire_.load()) co_await Retire();
}

Step<> Beat::Retire() {
  const auto retired = co_await port_.Retire(lease_->incarnation());
  if (!retired) {
    LogWarning("the worker could not sign off; others wait for its lease to run out",
               {{"store", parts_.address}, {"error", retired.error().message}});
  }
  lease_->MarkDead();
}

// Logs the first failure of a row.
bool Beat::Failed(const char* event, const std::string& error) {
  if (parts_.lives.SetTrouble(error.empty() ? "unknown" : error)) {
    LogWarning(event, {{"store", parts_.address}, {"error", error}});
  }
  return false;
}

Step<bool> Beat::Register() {
  Incarnation& self = parts_.self;
  self.id = self.worker.substr(0, 50) + "." + parts_.random.Hex(12);
  self.lease = parts_.engine.Get().lease;
  const BootTime sent = parts_.clock.Now();
  const Status registered = co_await port_.Register(self);
  if (!registered) {
    if (registered.error().code == ErrorCode::Unknown) {  // it may stand there: BeginAnew ends it first
      lease_ = std::make_shared<Lease>(self.id, self.lease, sent);
      lease_->MarkDead();
    }
    co_return Failed("the worker can't register; it will be tried until it succeeds",
                     registered.error().message);
  }
  parts_.lives.SetTrouble("");
  watch_ = PeerWatch(2 * self.lease / kBeatsPerLease);
  lease_ = std::make_shared<Lease>(self.id, self.lease, sent);
  LogInfo("worker registered", {{"store", parts_.address}, {"incarnation", self.id}});
  parts_.lives.SetOwn(lease_);
  told_(News::Born);
  co_return true;
}

Step<bool> Beat::Renew() {
  const BootTime sent = parts_.clock.Now();
  const auto alive = co_await port_.Renew(lease_->incarnation());
  if (!alive) {
    co_return Failed("the beat failed; nothing new is started until it succeeds", alive.error().message);
  }
  if (!*alive) {
    const bool anew = co_await BeginAnew();
    co_return anew;
  }
  if (!parts_.lives.SetTrouble("")) {
    LogInfo("the beat succeeds again", {{"store", parts_.address}});
    lease_->DoubtWhatRuns();
  }
  lease_->Renewed(sent);
  told_(News::Renewed);
  co_return true;
}

Step<bool> Beat::BeginAnew() {
  if (lease_->Alive()) {
    LogError("this worker was marked dead: its running tasks are others' now, it registers anew",
             {{"store", parts_.address}, {"incarnation", lease_->incarnation()}});
    lease_->MarkDead();
    parts_.lives.SetOwn(nullptr);
    told_(News::Died);
  }
  // Whoever marks a life dead ends its row and its beat together. Where somebody has ended one of them by
  // hand the other must not stand: the row would keep the tasks of this life from being rescued. Tried until
  // it succeeds, also where a replica that has not heard of this life's end would renew it.
  const auto ended = co_await port_.Retire(lease_->incarnation());
  if (!ended) co_return Failed("the worker's former life can't be ended", ended.error().message);
  lease_.reset();
  co_return co_await Register();
}

Step<> Beat::WatchPeers() {
  const auto peers = co_await port_.Peers();
  if (!peers) co_return;
  std::set<std::string> gone;
  const std::vector<PeerBeat> still = watch_.Observe(parts_.clock.Now(), lease_->incarnation(), *peers);
  for (const PeerBeat& peer : still) {
    const auto marked = co_await port_.MarkDead(peer.incarnation.id, peer.beat);
    if (!marked || !*marked) continue;
    parts_.marked_dead.Add();
    gone.insert(peer.incarnation.id);
    LogWarning(
        "worker marked dead: its beat stood still for its whole lease",
        {{"store", parts_.address}, {"incarnation", peer.incarnation.id}, {"host", peer.incarnation.host}});
  }
  std::vector<Incarnation> alive;
  for (const PeerBeat& peer : *peers) {
    if (!gone.contains(peer.incarnation.id)) alive.push_back(peer.incarnation);
  }
  if (parts_.lives.Found(std::move(alive))) told_(News::PeerGone);
}

}  // namespace millrace::engine
