// How a process that works is, for probes and for the service manager.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/worker/worker.h"

namespace millrace::engine {

struct ProcessFacts {
  std::vector<std::string> missing;         // why it is not ready, a line each; empty: it is
  std::string stands_still;                 // the thread that should go on and does not; empty: none
  std::optional<WorkerTotals> totals = {};  // of a worker
};

// Attempts that came to an end, whatever that was.
std::uint64_t EndedOf(const WorkerTotals& totals);

// `no_plan`: why it has no plan; empty: it has one, or needs none. Ready is a worker with a plan and a fresh
// beat in one shard at least.
ProcessFacts FactsOf(const Worker& worker, const std::string& no_plan, Micros patience);

// What changes between two looks, so far apart: `12 running, 300 queued, 1,234 tasks a second`. Pure.
std::string LoadText(const WorkerTotals& before, const WorkerTotals& now, Micros apart);

// Where the facts are asked for while whatever they are about comes and goes. Thread-safe.
class ProcessView {
 public:
  using Facts = std::function<ProcessFacts(Micros patience)>;  // thread-safe; waits for nobody
  using Metrics = std::function<std::string()>;                // likewise

  // Until the guard goes, which waits for whoever is asking.
  class Shown {
   public:
    explicit Shown(ProcessView& view) : view_(view) {}
    ~Shown();
    Shown(const Shown&) = delete;
    Shown& operator=(const Shown&) = delete;

   private:
    ProcessView& view_;
  };
  void Show(Facts facts, Metrics metrics);
  // It is ready no more, whatever the facts are.
  void Ending();

  // `patience`: how long a thread may be overdue.
  ProcessFacts Ask(Micros patience) const;
  // nullopt: nothing measures yet, or any more.
  std::optional<std::string> MetricsText() const;

 private:
  mutable Mutex mutex_;  // held while it asks, so that what is asked about does not go meanwhile
  bool ending_ MILLRACE_GUARDED_BY(mutex_) = false;
  Facts facts_ MILLRACE_GUARDED_BY(mutex_);
  Metrics metrics_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
