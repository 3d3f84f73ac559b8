// Tasks whose runs have killed their worker's process: which they are, and when one of them may be claimed.
//
// A suspect is claimed once nothing else runs in this worker; only so can one more death be laid at its door.
// Those that a scan passes are remembered, and take their turns one after another.
// Where flight recorders are lost with their machine, the rescues noted in millrace_attempts count instead.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"
#include "framework/store/task_store.h"
#include "framework/task/task.h"

namespace millrace::engine {

// Lets a task that has killed its process twice run with nothing beside it.
//
// Tasks enter before they are claimed and leave when their handler has ended. A scanner that has found a
// suspect asks for solitude: nothing more enters, and once all others have left the suspect may, alone.
//
// Suspects follow each other without a pause, for a stretch that ends: then the others have the worker for as
// long as they were kept out, or until nobody uses it. So neither a storm of suspects nor one that waits
// beside a long job stops the worker for the rest. Nor is one kept waiting for ever beside work of which
// there is always something that takes long: after a quarter of an hour it is waited for.
//
// Thread-safe; one for all shards of a worker.
class SoloGate {
 public:
  explicit SoloGate(const Clock& clock) : clock_(clock) {}

  // Room for `count` tasks that are about to be claimed; false while somebody wants, or has, solitude.
  bool Enter(std::size_t count);
  // A task that is claimed already enters in any case; false: it may not run, somebody wants to be alone.
  bool EnterClaimed();
  void Leave(std::size_t count = 1);

  // Asks for solitude in the name of `suspect`; true once everybody else has left. Ask again until then,
  // many times a second: a wish that nobody renews is forgotten. Whoever asks is told no while one has it,
  // also in the same name, and while it is the turn of those who need none. While what runs is expected to
  // take longer (`others_take`) than a suspect would wait, nobody is kept out; once that has been so for a
  // quarter of an hour the wish counts all the same, for as long as it was refused.
  bool EnterAlone(const std::string& suspect, Micros others_take = Micros(0));
  // Takes the wish back; nothing happens where another has it, or where the suspect is alone already: it may
  // be another strand's by now.
  void Withdraw(const std::string& suspect);
  // Likewise for whichever task of this shard wants it and has it not.
  void WithdrawAll(const std::string& shard);
  // The suspect has ended, or could not be claimed after all.
  void LeaveAlone();
  bool Wanted() const;

 private:
  bool IsOthersTurn(BootTime now) const MILLRACE_REQUIRES(mutex_);
  void EndStretch(BootTime now) MILLRACE_REQUIRES(mutex_);
  // EnterAlone; `insists` is set where others' long work is no reason any more.
  bool Ask(const std::string& suspect, Micros others_take, BootTime now, bool& insists)
      MILLRACE_REQUIRES(mutex_);
  // For how long a wish is to count that is uttered now; zero: it is refused.
  Micros PatienceOf(BootTime now, Micros others_take) MILLRACE_REQUIRES(mutex_);
  // Of the wish.
  bool Forgotten() const MILLRACE_REQUIRES(mutex_);
  void DropForgotten() MILLRACE_REQUIRES(mutex_);

  const Clock& clock_;
  mutable Mutex mutex_;
  std::atomic<std::size_t> inside_{0};  // grows under the mutex alone; each task's end needs no lock
  std::string suspect_ MILLRACE_GUARDED_BY(mutex_);  // wants solitude, or has it; empty: none
  bool alone_ MILLRACE_GUARDED_BY(mutex_) = false;   // has it
  BootTime asked_ MILLRACE_GUARDED_BY(mutex_){};     // when `suspect_` did first
  BootTime renewed_ MILLRACE_GUARDED_BY(mutex_){};   // and last, or when a suspect's solitude has ended
  Micros patience_ MILLRACE_GUARDED_BY(mutex_){0};   // of this wish
  // Since when suspects have been waiting of whom none was alone, and when one of them asked last.
  BootTime refused_ MILLRACE_GUARDED_BY(mutex_){};
  BootTime asked_last_ MILLRACE_GUARDED_BY(mutex_){-std::chrono::hours(1)};
  // Since when nobody else has been able to enter, over all suspects in succession.
  std::optional<BootTime> stretch_ MILLRACE_GUARDED_BY(mutex_);
  BootTime others_from_ MILLRACE_GUARDED_BY(mutex_){};
  BootTime others_until_ MILLRACE_GUARDED_BY(mutex_){};
};

// Not thread-safe.
class Suspects {
 public:
  // Whether one of this group is to be claimed now; later, since it could not be started now; or by others.
  enum class Take { Now, Later, Never };
  using MayClaim = std::function<Take(const DueGroup&)>;

  Suspects(const std::string& shard, SoloGate& gate) : shard_(shard), gate_(gate) {}

  // A suspect is not to be claimed with others. It is remembered until its turn; one that finds no place is
  // met again once its group is scanned from its beginning.
  bool IsSuspect(const DueGroup& group, const ScanRow& row);
  bool Waits() const { return !waiting_.empty(); }
  bool Waits(const std::string& handler) const;
  // The last Turn has asked for solitude, and has not got it: it is to be asked for again soon.
  bool Asks() const { return asks_; }
  // The one that is to be claimed now, by itself, in the gate's solitude; whoever asks gives that back where
  // the claim fails. Nothing while others are under way, or have their turn, or will run for long
  // (`others_take`). Those that may be claimed no more are forgotten; those that can't be started now are
  // passed, and keep nobody out.
  std::optional<ClaimRequest> Turn(const std::string& incarnation, const MayClaim& may_claim,
                                   Micros others_take);
  // Forgets all that wait, and wants no solitude for them.
  void Forget();

  // A task that was claimed with others: false says that it may run, whatever its record is.
  bool MayObject(const Task& task) const;
  // How many of its attempts ended by a rescue is to be read and noted before Objection is asked.
  bool WantsRecord(const Task& task) const;
  void Note(const Task& task, std::size_t rescues);
  // What is to become of it at once; nothing: it may run.
  std::optional<Outcome> Objection(const Task& task);

 private:
  using Place = std::pair<TableName, std::uint64_t>;  // table, id
  struct Waiting {
    DueGroup group;
    Place place;
    std::uint32_t attempt = 0;
  };
  // What millrace_attempts said of a task when its attempt had this number.
  struct Record {
    std::uint32_t attempt = 0;
    std::size_t rescues = 0;
  };

  std::string NameOf(const Place& place) const;
  std::deque<Waiting>::iterator Erase(std::deque<Waiting>::iterator one);
  const Record* RecordOf(const Task& task) const;

  const std::string& shard_;
  SoloGate& gate_;
  std::deque<Waiting> waiting_;
  std::set<Place> places_;  // of those that wait
  bool asks_ = false;
  std::map<Place, Record> records_;  // of tasks that were claimed far more often than they failed
};

}  // namespace millrace::engine
