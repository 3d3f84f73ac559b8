// One life of this worker in one shard: is it registered, alive, and did it beat recently enough to start
// work?
#pragma once

#include <atomic>
#include <string>

#include "framework/base/clock.h"

namespace millrace::engine {

// Thread-safe. Written by the heartbeat, read by everybody. Once dead it stays dead: a new life is a new
// object.
class Lease {
 public:
  Lease(std::string incarnation, Micros lease, BootTime registered)
      : incarnation_(std::move(incarnation)),
        lease_(lease),
        last_sent_(registered.time_since_epoch().count()) {}

  const std::string& incarnation() const { return incarnation_; }

  bool Alive() const { return alive_.load(std::memory_order_acquire); }
  void MarkDead() { alive_.store(false, std::memory_order_release); }

  // A renewal that was sent at `sent` succeeded.
  void Renewed(BootTime sent) {
    last_sent_.store(sent.time_since_epoch().count(), std::memory_order_release);
  }

  // May a handler start now? Others may mark this life dead once its beat has stood still for the lease; a
  // start keeps a fifth of it in hand. The clock goes on while the machine sleeps, so a worker that wakes
  // starts nothing.
  bool MayStart(BootTime now) const { return Alive() && SinceSent(now) < lease_ - lease_ / 5; }

  // The beat succeeds again after a failure, or a settle is refused: the database may be another now, its
  // replica, which has not heard of all that this life has done. True once after each: rows may run under it
  // without its knowing.
  void DoubtWhatRuns() { in_doubt_.store(true, std::memory_order_release); }
  bool TakeDoubt() { return in_doubt_.exchange(false, std::memory_order_acq_rel); }

  // May a permit under this life still be counted upon? Others may take it over once the life is marked dead,
  // after a whole lease; who holds one stops at half of it, and is given up after a quarter more.
  bool KeepsPermits(BootTime now) const { return Alive() && SinceSent(now) < lease_ / 2; }
  Micros PermitGrace() const { return lease_ / 4; }
  // A process that was stopped for so long: somebody may have taken it over meanwhile.
  bool MayBeOthers(BootTime now) const { return !Alive() || SinceSent(now) >= lease_; }

  // Has a renewal succeeded that was sent then or later? The shard took a write since.
  bool RenewedSince(BootTime at) const { return SinceSent(at) <= Micros(0); }

  // A renewal is overdue: it is sent every fifth of the lease, so the database answers slowly or not at all.
  bool IsLate(BootTime now) const { return SinceSent(now) > lease_ * 3 / 10; }

 private:
  Micros SinceSent(BootTime now) const {
    return now - BootTime(Micros(last_sent_.load(std::memory_order_acquire)));
  }

  const std::string incarnation_;
  const Micros lease_;
  std::atomic<bool> alive_{true};
  std::atomic<bool> in_doubt_{false};
  std::atomic<Micros::rep> last_sent_;
};

}  // namespace millrace::engine
