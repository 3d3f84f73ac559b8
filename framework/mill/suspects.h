// Tasks whose runs have killed their worker's process: which they are, and when one of them may be claimed.
//
// A suspect is claimed once nothing else runs in this worker; only so can one more death be laid at its door.
// Those that a scan passes are remembered, and take their turns one after another.
// Where flight recorders are lost with their machine, the rescues noted in millrace_attempts count instead.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "framework/mill/solo_gate.h"
#include "framework/store/task_store.h"
#include "framework/task/outcome.h"

namespace millrace::engine {

// Not thread-safe.
class Suspects {
 public:
  using MayClaim = std::function<bool(const DueGroup&)>;

  Suspects(const std::string& shard, SoloGate& gate) : shard_(shard), gate_(gate) {}

  // A suspect is not to be claimed with others. It is remembered until its turn; one that finds no place is
  // met again once its group is scanned from its beginning.
  bool IsSuspect(const DueGroup& group, const ScanRow& row);
  bool Waits() const { return !waiting_.empty(); }
  // The one that is to be claimed now, by itself, in the gate's solitude; whoever asks gives that back where
  // the claim fails. Nothing while others are under way, or have their turn, or will run for long
  // (`others_take`). Those that may be claimed no more are forgotten.
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
  Waiting TakeFirst();
  const Record* RecordOf(const Task& task) const;

  const std::string& shard_;
  SoloGate& gate_;
  std::deque<Waiting> waiting_;
  std::set<Place> places_;           // of those that wait
  std::map<Place, Record> records_;  // of tasks that were claimed far more often than they failed
};

}  // namespace millrace::engine
