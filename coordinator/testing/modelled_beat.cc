#include "coordinator/testing/modelled_beat.h"

#include <algorithm>

namespace millrace::engine {
namespace {

constexpr int kBeatsPerLease = 5;
constexpr ThreadName kThread = ThreadName::Beat;

}  // namespace

ModelledBeat::ModelledBeat(MillParts parts, std::function<void()> beat)
    : parts_(parts),
      interval_(parts_.settings.lease / kBeatsPerLease),
      beat_(std::move(beat)),
      watch_(2 * interval_) {}

void ModelledBeat::Run() {
  began_ = parts_.Now();
  if (parts_.state.life) {
    Renew();
  } else {
    Register();
  }
}

void ModelledBeat::Next() {
  const Micros left = interval_ - (parts_.Now() - began_);
  parts_.After(kThread, std::max(left, interval_ / 4), [this] { Run(); });
}

void ModelledBeat::Register() {
  const std::string id = parts_.process.name + "." + parts_.timeline.random().Hex(8);
  const BootTime sent = parts_.Now();
  const Incarnation self{id, parts_.process.name, parts_.process.name, 1, parts_.settings.lease, {}};
  parts_.Write<Status>(
      kThread, [self](CheckedShard& shard) { return shard.shard().Register(self); },
      [this, id, sent](const Status& registered) {
        if (!registered) {
          Next();
          return;
        }
        parts_.Trace("registered as " + id);
        parts_.state.life = std::make_shared<Lease>(id, parts_.settings.lease, sent);
        WatchPeers();
      });
}

void ModelledBeat::Renew() {
  const BootTime sent = parts_.Now();
  const std::string id = parts_.state.life->incarnation();
  parts_.Write<Result<bool>>(
      kThread, [id](CheckedShard& shard) { return shard.shard().Renew(id); },
      [this, sent](const Result<bool>& alive) {
        if (!alive) {
          Next();
          return;
        }
        if (!*alive) {
          parts_.Trace("finds itself marked dead: " + parts_.state.life->incarnation());
          parts_.state.life->MarkDead();
          parts_.state.life.reset();
          beat_();
          Register();
          return;
        }
        parts_.state.life->Renewed(sent);
        beat_();
        WatchPeers();
      });
}

void ModelledBeat::WatchPeers() {
  using Peers = Result<std::vector<PeerBeat>>;
  parts_.Read<Peers>(
      kThread, [](CheckedShard& shard) { return shard.shard().Peers(); },
      [this](const Peers& peers) {
        if (!peers) {
          Next();
          return;
        }
        live_.clear();
        for (const PeerBeat& peer : *peers) live_.insert(peer.incarnation.id);
        to_mark_ = Dead(*peers);
        MarkNext();
      });
}

std::vector<PeerBeat> ModelledBeat::Dead(const std::vector<PeerBeat>& peers) {
  const std::string& self = parts_.state.life->incarnation();
  if (!parts_.settings.bugs.marks_without_watching) return watch_.Observe(parts_.Now(), self, peers);
  std::vector<PeerBeat> dead;
  std::map<std::string, std::optional<std::uint64_t>> look;
  for (const PeerBeat& peer : peers) {
    look[peer.incarnation.id] = peer.beat;
    const auto last = last_look_.find(peer.incarnation.id);
    const bool still = last != last_look_.end() && last->second == peer.beat;
    if (still && peer.incarnation.id != self) dead.push_back(peer);
  }
  last_look_ = std::move(look);
  return dead;
}

void ModelledBeat::MarkNext() {
  if (to_mark_.empty()) {
    parts_.state.live = std::make_shared<const std::set<std::string>>(std::move(live_));
    live_ = {};
    Next();
    return;
  }
  const PeerBeat peer = to_mark_.back();
  to_mark_.pop_back();
  parts_.database.SetFlag(
      parts_.process.database, parts_.process.On(kThread), peer.incarnation.id,
      [peer](CheckedShard& shard) { return shard.MarkDead(peer.incarnation.id, peer.beat); },
      [this, peer](const Result<bool>& marked) {
        if (marked && *marked) {
          parts_.Trace("marked dead: " + peer.incarnation.id);
          live_.erase(peer.incarnation.id);
        }
        MarkNext();
      });
}

}  // namespace millrace::engine
