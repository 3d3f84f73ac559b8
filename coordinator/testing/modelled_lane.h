// The steps of a lane: a queue, two threads, the check before each start, the run, the result. What was
// claimed may be held up between any two of them.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "coordinator/testing/mill_parts.h"
#include "framework/mill/settle.h"

namespace millrace::engine {

class ModelledLane {
 public:
  ModelledLane(MillParts parts, Settler& settler) : parts_(parts), settler_(settler) {}

  std::size_t Room() const;
  // Takes tasks that were claimed under this life.
  void Push(std::vector<Task> tasks, const std::shared_ptr<Lease>& life);
  // After each beat, and after a death: what is parked starts again, or is others' business now.
  void Unpark();
  // Its attempt ends without a run.
  void GiveBack(const Task& task, const std::shared_ptr<Lease>& life);

 private:
  struct Station {
    ThreadName thread;
    bool resting = true;
  };

  void WakeOne();
  void Take(Station& station);
  bool ReadyToStart(const AttemptPtr& attempt);
  void Run(Station& station, const AttemptPtr& attempt);
  void Ended(const AttemptPtr& attempt, const Outcome& outcome);
  Outcome Ran();
  static AttemptPtr Make(Task task, const std::shared_ptr<Lease>& life);

  const MillParts parts_;
  Settler& settler_;
  std::deque<AttemptPtr> queue_;
  std::vector<AttemptPtr> parked_;
  std::array<Station, 2> stations_{Station{ThreadName::FirstLane}, Station{ThreadName::SecondLane}};
};

}  // namespace millrace::engine
