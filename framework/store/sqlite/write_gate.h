// One writer at a time, first come first served. SQLite itself admits one writer but lets the others poll
// with growing naps, so that threads of one process starve each other; behind this gate they queue instead.
// Writers of other processes are met by SQLite's own busy time-out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"

namespace millrace::engine::sqlite {

// A writer that may stay for a term. Whoever waits when the term is over ends its stay, since a handler that
// sleeps within its transaction does not look at any clock.
class GateTenant {
 public:
  virtual ~GateTenant() = default;
  // Keeps the tenant from using the database; false: it is using it right now. Does not wait.
  virtual bool TryHold() = 0;
  // After TryHold: ends the stay, which calls Leave, and lets go of the tenant.
  virtual void Evict() = 0;
};

// Thread-safe. Not recursive.
class WriteGate {
 public:
  // False: it was not this caller's turn within `limit`.
  bool Enter(Micros limit);
  // The writer inside gives itself a term. It must stay alive until it has left.
  void SetTerm(GateTenant& tenant, BootTime end);
  void Leave();

 private:
  struct Term {
    GateTenant* tenant;
    BootTime end;
  };
  // Ends the stay of a tenant whose term is over; returns how long to wait for the next look.
  Micros Overdue(Micros patience) MILLRACE_REQUIRES(mutex_);
  void SkipGivenUp() MILLRACE_REQUIRES(mutex_);

  Mutex mutex_;
  CondVar turn_;
  std::uint64_t next_ticket_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::uint64_t serving_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::optional<Term> term_ MILLRACE_GUARDED_BY(mutex_);
  // Tickets behind `serving_` whose holders went away; at most as many as there are threads.
  std::vector<std::uint64_t> given_up_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine::sqlite
