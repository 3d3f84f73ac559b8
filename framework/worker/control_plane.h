// All that a worker knows of a cluster: which shards there are, which of their slices are its own, what is
// paused, and the configuration in force. It is asked again and again, at least twice a second: an answer is
// cheap, never waits for a server, and holds until the next.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/config/config.h"
#include "framework/policy/breaker.h"
#include "framework/policy/limit_shares.h"
#include "framework/policy/pauses.h"
#include "framework/store/store.h"
#include "framework/threads/signal.h"

namespace millrace::engine {

using BreakerWords = std::map<std::string, BreakerWord>;  // by task type; of those that are open
using BreakerAsks = std::map<std::string, BreakerAsk>;    // by task type; of those that are configured

using StoresByShard = std::map<std::string, std::shared_ptr<Store>>;

// Thread-safe.
class ControlPlane {
 public:
  virtual ~ControlPlane() = default;

  // The shards to serve. A new one is served from now on; one that is gone is drained, and its store kept
  // until that is done. Another store under a known name is both.
  virtual StoresByShard Shards() = 0;
  // The slices of a shard that this worker should scan now; empty for a shard that it has no part in. What
  // leaves the answer is claimed no more, and what of it is queued is given back.
  virtual std::vector<TableSlices> Slices(const std::string& shard) = 0;
  // What operators have paused; immutable, never null. A later call may return another.
  virtual std::shared_ptr<const Pauses> Paused() = 0;
  // The configuration in force; immutable, never null. A later call may return another.
  virtual std::shared_ptr<const Config> CurrentConfig() = 0;
  // Which breakers are open in the cluster; immutable. Null: there is no cluster, or it can't be asked now,
  // and each worker's own state holds.
  virtual std::shared_ptr<const BreakerWords> Breakers() { return nullptr; }
  // What this worker would have the cluster do about them from now on. Not called where no type has a
  // breaker, and none had.
  virtual void AskOfBreakers(const BreakerAsks& /*asks*/) {}

  using SharesTold = std::function<void(std::shared_ptr<const LimitShares>)>;
  // Where limits are divided: tells this worker's shares at once, and whenever they change, before anybody is
  // told that they are in force. Nobody: each limit is the worker's own as a whole. An empty function ends
  // it; once this returns the former is not called any more.
  virtual void FollowShares(SharesTold /*told*/) {}
  // Notifies these where what is answered here has become another by somebody's word, so that the worker need
  // not ask often while it has nothing in hand. A hint: it asks all the same. None end it; once this returns
  // the former are not notified any more.
  virtual void FollowChanges(std::vector<Signal*> /*wakes*/) {}
  // The worker was registered in a shard: whoever counted it among the dead before may have given its shares
  // to others.
  virtual void LifeBegun() {}
};

}  // namespace millrace::engine
