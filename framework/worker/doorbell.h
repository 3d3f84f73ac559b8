// What tells a worker that it should look now: the feeds of its shards, and the datagrams of producers. Hints
// only: where one is off, or in trouble, the mill polls as ever (framework/doorbell/README.md).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "framework/base/mutex.h"
#include "framework/doorbell/datagram.h"
#include "framework/doorbell/listening.h"
#include "framework/mill/mill.h"
#include "framework/store/change_feed.h"
#include "framework/threads/signal.h"
#include "framework/threads/thread.h"

namespace millrace::engine {

// Listens to what changes in one shard, on a thread of its own, and rings the shard's mill.
class Doorbell {
 public:
  // Neither the clock nor the mill goes before it. `feed` is null where the store has none.
  Doorbell(const Clock& clock, Mill& mill, std::unique_ptr<ChangeFeed> feed);
  ~Doorbell() { Stop(); }

  // Where no thread can be had, or there is nothing to listen to, it stays off.
  void Start();
  void RequestStop();
  void Stop();
  // For people: `on`, or `off` and why. Thread-safe.
  std::string State() const;

 private:
  void Run();
  // Until it ends; returns why.
  Error Listen(Micros& listened);
  void Note(const std::string& state);

  const Clock& clock_;
  Mill& mill_;
  const std::unique_ptr<ChangeFeed> feed_;
  std::atomic<bool> stopping_{false};
  Signal stop_;
  mutable Mutex mutex_;
  std::string state_ MILLRACE_GUARDED_BY(mutex_) = "off";
  Thread thread_;
};

// Hears the datagrams by which producers ring a worker, for all its shards, on a thread of its own.
class RingListener {
 public:
  using OnRing = std::function<void(const ShardRing&)>;

  // `on_ring` is called on its thread.
  explicit RingListener(OnRing on_ring) : on_ring_(std::move(on_ring)) {}
  ~RingListener() { Stop(); }

  // Invalid: that is no address of this host; Unavailable: it is taken, or no thread can be had.
  Status Start(const std::string& address);
  void Stop();
  // Where it listens, `host:port`; empty: nowhere.
  std::string Address() const { return socket_ ? socket_->address() : std::string(); }

 private:
  const OnRing on_ring_;
  std::unique_ptr<RingSocket> socket_;
  std::atomic<bool> stopping_{false};
  Thread thread_;
};

}  // namespace millrace::engine
