// Lets a task that has killed its process twice run with nothing beside it.
//
// Tasks enter before they are claimed and leave when their handler has ended. A scanner that has found a
// suspect asks for solitude: nothing more enters, and once all others have left the suspect may, alone.
//
// Suspects follow each other without a pause, for a stretch that ends: then the others have the worker for as
// long as they were kept out, or until nobody uses it. So neither a storm of suspects nor one that waits
// beside a long job stops the worker for the rest.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"

namespace millrace::engine {

// Thread-safe; one for all shards of a worker.
class SoloGate {
 public:
  explicit SoloGate(const Clock& clock) : clock_(clock) {}

  // Room for `count` tasks that are about to be claimed; false while somebody wants, or has, solitude.
  bool Enter(std::size_t count);
  // A task that is claimed already enters in any case; false: it may not run, somebody wants to be alone.
  bool EnterClaimed();
  void Leave(std::size_t count = 1);

  // Asks for solitude in the name of `suspect`; true once everybody else has left. Ask again until then;
  // others are told no while one has it, and everybody while it is the turn of those who need none. While
  // what runs is expected to take longer (`others_take`) than a suspect would wait, nobody is kept out.
  bool EnterAlone(const std::string& suspect, Micros others_take = Micros(0));
  // Takes the wish back; nothing happens where another has it.
  void Withdraw(const std::string& suspect);
  // Likewise for whichever task of this shard wants it and has it not.
  void WithdrawAll(const std::string& shard);
  // The suspect has ended, or could not be claimed after all.
  void LeaveAlone();
  bool Wanted() const;

 private:
  bool IsOthersTurn(BootTime now) const MILLRACE_REQUIRES(mutex_);
  void EndStretch(BootTime now) MILLRACE_REQUIRES(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  std::size_t inside_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::string suspect_ MILLRACE_GUARDED_BY(mutex_);  // wants solitude, or has it; empty: none
  bool alone_ MILLRACE_GUARDED_BY(mutex_) = false;   // has it
  BootTime asked_ MILLRACE_GUARDED_BY(mutex_){};     // when `suspect_` did first
  // Since when nobody else has been able to enter, over all suspects in succession.
  std::optional<BootTime> stretch_ MILLRACE_GUARDED_BY(mutex_);
  BootTime others_from_ MILLRACE_GUARDED_BY(mutex_){};
  BootTime others_until_ MILLRACE_GUARDED_BY(mutex_){};
};

}  // namespace millrace::engine
