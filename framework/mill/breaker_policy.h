// The circuit breakers of a worker's task types (framework/policy/breaker.h), between the calls of many
// threads and what a cluster says.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/config/config.h"
#include "framework/mill/admission.h"
#include "framework/policy/breaker.h"
#include "framework/task/task.h"

namespace millrace::engine {

// What an attempt has of its type's breaker: whether it was let through, as what, and whether its end was
// told. Used by whoever has the attempt.
class BreakerPass {
 public:
  bool Given() const { return value_.load(std::memory_order_relaxed) != 0; }
  void Give(BreakerMark mark) { value_.store(std::uint64_t{mark.era} << 2 | (mark.probe ? kProbe : 0)); }
  BreakerMark Mark() const {
    const std::uint64_t value = value_.load();
    return {static_cast<std::uint32_t>(value >> 2), (value & kProbe) != 0};
  }
  // True once.
  bool TellEnd() { return (value_.fetch_or(kTold) & kTold) == 0; }

 private:
  static constexpr std::uint64_t kTold = 1;
  static constexpr std::uint64_t kProbe = 2;
  std::atomic<std::uint64_t> value_{0};
};

// Of one task type. Thread-safe.
class BreakerPolicy final : public StartPolicy {
 public:
  BreakerPolicy(std::string type, BreakerRules rules) : type_(std::move(type)), breaker_(std::move(rules)) {}

  void SetRules(BreakerRules rules);

  // StartPolicy: which tasks are let through is decided where each begins (`Begin`).
  bool Open(BootTime now, WallTime wall) override;
  const char* Name() const override { return "breaker"; }
  std::size_t ClaimRoom(BootTime now, std::size_t waiting) override;
  std::size_t Take(std::size_t most, BootTime now) override;
  void GiveBack(std::size_t) override {}
  BootTime Next(BootTime now) override;
  void Ended(const StartEnd&, BootTime) override {}
  BreakerPolicy* AsBreaker() override { return this; }

  // The last thing before a call: false where it may not begin, and goes back. One that has passed before
  // may.
  bool Begin(BreakerPass& pass, BootTime now);
  // A call has ended with this outcome, or would: what its task is to be given back with, in place of a
  // failure that is nobody's but the partner's; nullopt: it ends as it says. Told more than once it counts
  // once. `took`: the call.
  std::optional<Outcome> Judge(BreakerPass& pass, const Task& task, const Outcome& outcome, BootTime now,
                               Micros took = Micros(0));
  // The attempt is gone, whether it was judged or not.
  void Gone(BreakerPass& pass, BootTime now);

  void SetHand(BreakerHand hand, BootTime now);
  // `known`: the cluster can be asked; `word` is then what it says, null: nothing.
  void Follow(bool known, const BreakerWord* word, BootTime now);
  BreakerAsk Wish(BootTime now) const;
  BreakerView View(BootTime now) const;

 private:
  // Says in the log what has changed since it was asked last.
  void Tell(BootTime now) MILLRACE_REQUIRES(mutex_);

  const std::string type_;
  std::atomic<bool> held_{false};  // it is open; asked for every task
  mutable Mutex mutex_;
  Breaker breaker_ MILLRACE_GUARDED_BY(mutex_);
  bool told_ MILLRACE_GUARDED_BY(mutex_) = false;  // that it is open
};

using BreakersByType = std::map<std::string, std::shared_ptr<BreakerPolicy>>;

// What the configuration's types have, those of `known` where they stay: they keep their state.
BreakersByType BreakersOf(const Config& config, const BreakersByType& known);

// The task types that have one.
std::set<std::string> TypesWithBreakers(const Config& config);

}  // namespace millrace::engine
