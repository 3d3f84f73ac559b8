// Tells, in a shard whose workers were given load-balance numbers by hand, which numbers nobody alive serves.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "framework/base/mutex.h"
#include "framework/store/incarnation_store.h"
#include "framework/store/schema_store.h"

namespace millrace::engine {

// Look belongs to one thread; Uncovered is thread-safe.
class CoverageWatch {
 public:
  CoverageWatch(const Clock& clock, std::string shard, std::unique_ptr<SchemaStore> schema)
      : clock_(clock), shard_(std::move(shard)), schema_(std::move(schema)) {}

  // Judges by those alive now, and logs what has changed. Asks the schema once a minute how many numbers
  // there are; while it can't say, the former answer stands.
  void Look(std::span<const Incarnation> alive);
  // `0-31,40`; empty: every number is served.
  std::string Uncovered() const;

 private:
  void ReadSlices();

  const Clock& clock_;
  const std::string shard_;
  const std::unique_ptr<SchemaStore> schema_;
  BootTime read_{};
  std::uint32_t slices_ = 0;  // of the table that has the most; 0: not known yet
  mutable Mutex mutex_;
  std::string uncovered_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
