// Holds permits for the task types of which only so many may run at once in the whole cluster: takes them in
// the home shard before a task starts, and frees them once the outcome of its settle is known.
// Why, and what may still overlap: framework/README.md, "A limit of a few is held by rows".
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/mutex.h"
#include "framework/metrics/registry.h"
#include "framework/mill/permit_book.h"
#include "framework/mill/step.h"

namespace millrace::engine {

// What the strand asks of the shards; see PermitStore.
class PermitPort : public StrandPort {
 public:
  // Those that are served, sorted.
  virtual std::vector<std::string> Shards() = 0;
  // Of the shard's database: a shard's permits are others once it has another.
  virtual std::string AddressOf(const std::string& shard) { return shard; }
  // This worker's life there; null: it has none.
  virtual std::shared_ptr<Lease> Life(const std::string& shard) = 0;
  virtual bool OthersLive(const std::string& shard) = 0;

  virtual Reply<Result<std::string>> Home(const std::string& shard) = 0;
  virtual Reply<Status> NameHome(const std::string& shard, const std::string& home) = 0;
  virtual Reply<Result<std::vector<Permit>>> Permits(const std::string& home,
                                                     const std::vector<std::string>& handlers) = 0;
  virtual Reply<Status> Make(const std::string& home, const std::string& handler, std::uint32_t count) = 0;
  virtual Reply<Result<std::vector<PermitAnswer>>> Change(const std::string& home,
                                                          const std::string& incarnation,
                                                          const std::vector<PermitChange>& changes) = 0;
};

// Which types are held by permits: all that limit how many run at once, as long as nobody says that there
// are no more workers than that.
PermitRules PermitRulesOf(const Config& config);

// Run is the strand; the rest is thread-safe. One for all shards of a worker.
class Permits {
 public:
  struct Parts {
    const Clock& clock;
    Runner& runner;
    Registry& metrics;
    std::function<void()> room_again;  // tasks may be claimed again; never waits
    std::uint64_t seed = 0;
  };
  struct View {
    std::string home;              // empty: not known
    std::string trouble;           // why nothing is held; empty: nothing is wrong
    std::set<std::string> locked;  // types of which another session has locked a row
    std::vector<PermitView> types;
  };

  Permits(Parts parts, PermitPort& port) : parts_(std::move(parts)), port_(port), book_(parts_.seed) {}

  // Until Stop. What is held then is free once this worker's life in the home has ended.
  Step<> Run();
  void Stop();

  // The types that are held by permits from now on.
  void Follow(const PermitRules& rules);
  bool Holds(const std::string& type) const;
  // Some are, or something is still held.
  bool Any() const;
  // Something that runs has its permit by this life.
  bool HeldUnder(const Lease& life) const;
  // What lets a type through that is held by permits.
  std::shared_ptr<StartPolicy> PolicyOf(const std::string& type);

  // Claimed tasks on their way to the run stage. False: the type needs no permit, or they have theirs, and
  // the caller has them still.
  bool Take(const std::string& type, std::vector<AttemptPtr>& attempts);
  // The outcome of its settle is known, or it is others' business.
  void Ended(const Attempt& attempt);

  // Again and again, many times in a lease: tells those to stop whose permits can't be counted upon, and
  // gives back what waits in vain.
  void Watch(BootTime now);
  // Nothing more is started: what waits goes back.
  void StopStarting();

  View Look() const;

 private:
  class Policy;

  std::size_t Room(const std::string& type, BootTime now);
  bool HasRoom(const std::string& type, BootTime now) const;
  void Unwanted(const std::string& type);
  Step<Micros> Round();
  using Said = std::map<std::string, std::optional<std::string>>;  // by shard; nullopt: no answer

  Step<Said> AskHomes(const std::vector<std::string>& shards);
  Step<bool> FindHome();
  // Where the permits stand, and what the book asks for there now.
  template <class Asks>
  auto AtHome(Asks asks) {
    MutexLock lock(mutex_);
    return std::pair(home_, (book_.*asks)(parts_.clock.Now()));
  }
  Step<bool> Void(const Lease& life);
  Step<bool> Read();
  Step<bool> Change(const Lease& life);
  Step<bool> FreeLeft();
  bool Failed(const Error& error);
  void NoteLocked() MILLRACE_REQUIRES(mutex_);
  std::set<AttemptPtr> Withdrawn() const;
  void CountOverrun(const Attempt& attempt);
  void Begin(const std::vector<AttemptPtr>& attempts);

  const Parts parts_;
  PermitPort& port_;

  // The strand's own.
  std::vector<std::string> shards_;  // as of the last time that all of them were asked
  BootTime ask_home_{};              // whether it still is
  Micros pause_{0};
  std::atomic<bool> stopping_{false};

  mutable Mutex mutex_;
  PermitBook book_ MILLRACE_GUARDED_BY(mutex_);
  std::string home_ MILLRACE_GUARDED_BY(mutex_);  // written by the strand alone
  std::string trouble_ MILLRACE_GUARDED_BY(mutex_);
  std::set<std::string> locked_ MILLRACE_GUARDED_BY(mutex_);  // types, as they were told
  bool starts_ MILLRACE_GUARDED_BY(mutex_) = true;
  std::vector<AttemptPtr> overrunning_ MILLRACE_GUARDED_BY(mutex_);  // told to stop, and not back
};

}  // namespace millrace::engine
