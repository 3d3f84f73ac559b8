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
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "framework/store/task_desk.h"
#include "framework/store/task_store.h"
#include "framework/task/outcome.h"
#include "framework/worker/solo_gate.h"

namespace millrace::engine {

// Not thread-safe.
class Suspects {
 public:
  using MayClaim = std::function<bool(const DueGroup&)>;

  Suspects(const std::string& shard, SoloGate& gate, std::unique_ptr<TaskDesk> desk)
      : shard_(shard), gate_(gate), desk_(std::move(desk)) {}

  // A suspect is not to be claimed with others. It is remembered until its turn; one that finds no place is
  // met again once its group is scanned from its beginning.
  bool IsSuspect(const DueGroup& group, const ScanRow& row);
  bool Waits() const { return !waiting_.empty(); }
  // The one that is to be claimed now, by itself, in the gate's solitude; whoever asks gives that back where
  // the claim fails. Nothing while others are under way, or have their turn. Those that may be claimed no
  // more are forgotten.
  std::optional<ClaimRequest> Turn(const std::string& incarnation, const MayClaim& may_claim);
  // Forgets all that wait, and wants no solitude for them.
  void Forget();

  // What is to become at once of a task that was claimed with others; nothing: it may run.
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
  std::size_t RescuesOf(const Task& task);

  const std::string& shard_;
  SoloGate& gate_;
  const std::unique_ptr<TaskDesk> desk_;
  std::deque<Waiting> waiting_;
  std::set<Place> places_;           // of those that wait
  std::map<Place, Record> records_;  // of tasks that were claimed far more often than they failed
};

}  // namespace millrace::engine
