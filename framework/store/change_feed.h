// Hears that tables of a shard have changed, without asking again and again. A hint that it is worth to look
// now, and never more: what is heard may be wrong, late, doubled or missing (framework/doorbell/README.md).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// Tasks of this table and these slices may have become due.
struct Ring {
  std::optional<TableName> table = {};     // nullopt: any
  std::vector<std::uint32_t> slices = {};  // sorted; empty: any
  // The ids of those tasks, where they are known and no more than kMostRows; else none.
  std::vector<std::uint64_t> rows = {};
  static constexpr std::size_t kMostRows = 16;
  bool operator==(const Ring&) const = default;
};

// When anything was last written into a shard's database, but for beats, as its feed hears it: what nobody
// has touched need not be read again and again. A hint, too, so it is read now and then all the same; and
// where not even a beat is heard the log may leave the database out, and nothing is known. Thread-safe.
class HeardWrites {
 public:
  // So much later than it is heard a write is taken to be seen: its commit may wait for replicas.
  static constexpr Micros kSeenAfter = std::chrono::seconds(2);
  static constexpr Micros kReadAnyway = std::chrono::seconds(30);

  // From now on each write is heard; the last may just have been.
  void Begin(BootTime now) {
    beats_.store(false);
    write_.store(now);
  }
  void Write(BootTime now) { write_.store(now); }
  void Beat() { beats_.store(true); }
  void End() { write_.store(BootTime::max()); }  // nobody listens

  // True: what was read from then on is known to be as it was.
  bool UnchangedSince(BootTime read, BootTime now) const {
    const BootTime write = write_.load();
    return write != BootTime::max() && read - write >= kSeenAfter && now - read < kReadAnyway &&
           beats_.load();
  }

 private:
  std::atomic<BootTime> write_{BootTime::max()};
  std::atomic<bool> beats_{false};  // some were heard since the beginning
};

// It may outlive the store that it is of: a feed ends after it.
using HeardWritesPtr = std::shared_ptr<HeardWrites>;

// Whether a change of this table is worth a ring. Asked for each of them, on the feed's thread.
using IsWatched = std::function<bool(const TableName&)>;

// One thread, but for Interrupt.
class ChangeFeed {
 public:
  virtual ~ChangeFeed() = default;

  // Begins to listen, anew after Next has failed. What happened before is not told. Invalid, Denied: a
  // person has to do something about it, and the message says what; Unavailable: it may be better in a
  // moment.
  virtual Status Open() = 0;
  // What was heard, as soon as there is something; empty after a while without. An error: it hears nothing
  // until the next Open. Conflict: so much is going on that listening costs more than it brings.
  virtual Result<std::vector<Ring>> Next() = 0;
  // Thread-safe. Ends a call that waits, as Cancelled, and every later one.
  virtual void Interrupt() = 0;
};

}  // namespace millrace::engine
