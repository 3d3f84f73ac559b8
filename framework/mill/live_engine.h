// The engine's part of the configuration in force, as the threads of a worker read it.
#pragma once

#include "framework/base/mutex.h"
#include "framework/config/config.h"

namespace millrace::engine {

// Thread-safe. Read it anew for each round of work.
class LiveEngine {
 public:
  explicit LiveEngine(EngineConfig engine) : engine_(engine) {}

  EngineConfig Get() const {
    MutexLock lock(mutex_);
    return engine_;
  }
  void Set(EngineConfig engine) {
    MutexLock lock(mutex_);
    engine_ = engine;
  }

 private:
  mutable Mutex mutex_;
  EngineConfig engine_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
