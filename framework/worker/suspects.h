// Tasks whose runs have killed their worker's process: which they are, and when one of them may be claimed.
//
// A suspect is claimed once nothing else runs in this worker; only so can one more death be laid at its door.
// Where flight recorders are lost with their machine, the rescues noted in millrace_attempts count instead.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "framework/store/task_desk.h"
#include "framework/store/task_store.h"
#include "framework/task/outcome.h"
#include "framework/worker/solo_gate.h"

namespace millrace {

// Not thread-safe.
class Suspects {
 public:
  Suspects(const Clock& clock, const std::string& shard, SoloGate& gate, std::unique_ptr<TaskDesk> desk)
      : clock_(clock), shard_(shard), gate_(gate), desk_(std::move(desk)) {}

  // A suspect is not to be claimed with others. The first that is met is remembered, until its turn.
  bool IsSuspect(const std::string& table, const ScanRow& row);
  bool Waits() const { return waiting_.has_value(); }
  // The one that is to be claimed now, by itself, in the gate's solitude; whoever asks gives that back where
  // the claim fails. Nothing while others are under way.
  std::optional<ClaimRequest> Turn(const std::string& incarnation);
  // Lets the others work for a while.
  void Forget();

  // What is to become at once of a task that was claimed with others; nothing: it may run.
  std::optional<Outcome> Objection(const Task& task);

 private:
  using Place = std::pair<std::string, std::uint64_t>;  // table, id
  struct Waiting {
    Place place;
    std::uint32_t attempt = 0;
    BootTime since;
  };
  // What millrace_attempts said of a task when its attempt had this number.
  struct Record {
    std::uint32_t attempt = 0;
    std::size_t rescues = 0;
  };

  std::string NameOf(const Place& place) const;
  std::size_t RescuesOf(const Task& task);

  const Clock& clock_;
  const std::string& shard_;
  SoloGate& gate_;
  const std::unique_ptr<TaskDesk> desk_;
  std::optional<Waiting> waiting_;
  BootTime not_before_{};
  std::map<Place, Record> records_;  // of tasks that were claimed far more often than they failed
};

}  // namespace millrace
