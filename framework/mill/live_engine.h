// What the mills of a worker read of the configuration in force.
#pragma once

#include <memory>
#include <utility>

#include "framework/base/mutex.h"
#include "framework/config/config.h"

namespace millrace::engine {

// Thread-safe. Read it anew for each round of work.
class LiveEngine {
 public:
  explicit LiveEngine(EngineConfig engine, ScanRules scans = {})
      : engine_(std::move(engine)), scans_(std::make_shared<const ScanRules>(std::move(scans))) {}

  EngineConfig Get() const {
    MutexLock lock(mutex_);
    return engine_;
  }
  // Never null; another one says something else.
  std::shared_ptr<const ScanRules> Scans() const {
    MutexLock lock(mutex_);
    return scans_;
  }
  void Set(EngineConfig engine) {
    MutexLock lock(mutex_);
    engine_ = std::move(engine);
  }
  void SetScans(ScanRules scans) {
    MutexLock lock(mutex_);
    if (scans != *scans_) scans_ = std::make_shared<const ScanRules>(std::move(scans));
  }

 private:
  mutable Mutex mutex_;
  EngineConfig engine_ MILLRACE_GUARDED_BY(mutex_);
  std::shared_ptr<const ScanRules> scans_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
