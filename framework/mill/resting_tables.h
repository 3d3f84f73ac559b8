// Tables of one shard that the database does not let be written, or read, for now: locked as a whole, behind
// DDL or a dump, or gone. They rest, so that they keep no other table waiting.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <string_view>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// Thread-safe.
class RestingTables {
 public:
  // For `pause` at least, and twice as long as before where it is refused again and again. `why` is what the
  // database says. True: it was not refused of late.
  bool Rest(const TableName& table, BootTime now, Micros pause, std::string_view why) {
    MutexLock lock(mutex_);
    std::erase_if(tables_, [now](const auto& entry) { return entry.second.until + kRemembered <= now; });
    Resting& resting = tables_[table];
    const bool anew = resting.until == BootTime{};
    if (anew || resting.until + kTriedWithin <= now) resting.since = now;
    resting.last = now;
    resting.why = why;
    if (resting.until <= now) resting.pause = std::max(pause, std::min(2 * resting.pause, kLongest));
    resting.until = std::max(resting.until, now + std::max(pause, resting.pause));
    any_.store(true, std::memory_order_relaxed);
    return anew;
  }
  // Asked for each group of a look: most tables never rest.
  bool Rests(const TableName& table, const Clock& clock) const {
    if (!any_.load(std::memory_order_relaxed)) return false;
    MutexLock lock(mutex_);
    const auto found = tables_.find(table);
    return found != tables_.end() && clock.Now() < found->second.until;
  }
  // Those that are refused whenever they are tried, for longer than DDL or a lock in passing takes, and why
  // they were last.
  std::map<TableName, std::string> Lasting(BootTime now) const {
    std::map<TableName, std::string> lasting;
    if (!any_.load(std::memory_order_relaxed)) return lasting;
    MutexLock lock(mutex_);
    for (const auto& [table, resting] : tables_) {
      if (now < resting.until + kTriedWithin && resting.last - resting.since >= kLasting)
        lasting.emplace(table, resting.why);
    }
    return lasting;
  }

 private:
  static constexpr Micros kLongest = std::chrono::seconds(10);  // by itself
  static constexpr Micros kRemembered = std::chrono::minutes(1);
  static constexpr Micros kTriedWithin =
      std::chrono::seconds(10);  // of its rest's end, where anything is due
  static constexpr Micros kLasting = std::chrono::seconds(10);
  struct Resting {
    BootTime since{};  // the first refusal without a success in between, as far as is known
    BootTime last{};   // and the last one
    BootTime until{};
    Micros pause{0};
    std::string why;
  };

  std::atomic<bool> any_{false};  // has ever rested
  mutable Mutex mutex_;
  std::map<TableName, Resting> tables_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
