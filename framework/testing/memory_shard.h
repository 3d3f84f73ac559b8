// What the sessions of one memory store share.
#pragma once

#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/testing/memory_state.h"

namespace millrace::engine {

// Thread-safe through its mutex: each call of a session is one transaction under it.
struct MemoryShard {
  explicit MemoryShard(const Clock& its_clock) : clock(its_clock) {}

  const Clock& clock;
  Mutex mutex;
  MemoryState state MILLRACE_GUARDED_BY(mutex);
};

}  // namespace millrace::engine
