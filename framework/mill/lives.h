// Who lives in one shard, as its beat found last: this worker, and the others. Written by the beat strand,
// read by everybody.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/mill/lease.h"
#include "framework/store/incarnation_store.h"

namespace millrace::engine {

// Thread-safe.
class Lives {
 public:
  using Ids = std::set<std::string>;

  // The present life of this worker; null while it is not registered.
  std::shared_ptr<Lease> Own() const {
    MutexLock lock(mutex_);
    return own_;
  }
  // The claimers known to be alive when the last beat succeeded; null before the first.
  std::shared_ptr<const Ids> Live() const {
    MutexLock lock(mutex_);
    return live_;
  }
  // What they said of themselves.
  std::vector<Incarnation> Peers() const {
    MutexLock lock(mutex_);
    return peers_;
  }
  // Why the last beat failed; empty where it succeeded.
  std::string Trouble() const {
    MutexLock lock(mutex_);
    return trouble_;
  }

  void SetOwn(std::shared_ptr<Lease> own) {
    MutexLock lock(mutex_);
    own_ = std::move(own);
  }
  // True if there was none before.
  bool SetTrouble(const std::string& why) {
    MutexLock lock(mutex_);
    return std::exchange(trouble_, why).empty();
  }
  // All that are alive now. True if somebody known before is not among them.
  bool Found(std::vector<Incarnation> peers) {
    auto live = std::make_shared<Ids>();
    for (const Incarnation& peer : peers) live->insert(peer.id);
    MutexLock lock(mutex_);
    const auto known = std::exchange(live_, live);
    peers_ = std::move(peers);
    return known && std::any_of(known->begin(), known->end(),
                                [&](const std::string& id) { return !live->contains(id); });
  }
  // Another part of this process has marked it dead.
  void Buried(const std::string& incarnation) {
    MutexLock lock(mutex_);
    if (!live_) return;
    auto live = std::make_shared<Ids>(*live_);
    live->erase(incarnation);
    live_ = std::move(live);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<Lease> own_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const Ids> live_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<Incarnation> peers_ MILLRACE_GUARDED_BY(mutex_);
  std::string trouble_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
