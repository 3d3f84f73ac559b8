// One writer at a time, first come first served. SQLite itself admits one writer but lets the others poll
// with growing naps, so that threads of one process starve each other; behind this gate they queue instead.
// Writers of other processes are met by SQLite's own busy time-out.
#pragma once

#include <cstdint>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"

namespace millrace {

// Thread-safe. Not recursive.
class WriteGate {
 public:
  // False: it was not this caller's turn within `limit`.
  bool Enter(Micros limit);
  void Leave();

 private:
  void SkipGivenUp() MILLRACE_REQUIRES(mutex_);

  Mutex mutex_;
  CondVar turn_;
  std::uint64_t next_ticket_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::uint64_t serving_ MILLRACE_GUARDED_BY(mutex_) = 0;
  // Tickets behind `serving_` whose holders went away; at most as many as there are threads.
  std::vector<std::uint64_t> given_up_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace
