// The steps of a lane: a queue, two threads, the check before each start, the run, the landing. What was
// claimed may be held up between any two of them.
#pragma once

#include <array>
#include <deque>
#include <vector>

#include "coordinator/testing/modelled_settler.h"

namespace millrace::engine {

class ModelledLane {
 public:
  ModelledLane(MillParts parts, ModelledSettler& settler) : parts_(parts), settler_(settler) {}

  std::size_t Room() const;
  // Takes tasks that were claimed under this life.
  void Push(std::vector<Task> tasks, const std::shared_ptr<Standing>& life);
  // After each beat, and after a death: what is parked starts again, or is others' business now.
  void Unpark();
  // Its attempt ends without a run.
  void GiveBack(const Task& task, const std::shared_ptr<Standing>& life);

 private:
  struct Flight {
    Task task;
    std::shared_ptr<Standing> life;
  };
  struct Station {
    ThreadName thread;
    bool resting = true;
  };

  void WakeOne();
  void Take(Station& station);
  bool ReadyToStart(const Flight& flight);
  void Run(Station& station, const Flight& flight);
  void Land(const Flight& flight, const Outcome& outcome);
  Outcome Ran();

  const MillParts parts_;
  ModelledSettler& settler_;
  std::deque<Flight> queue_;
  std::vector<Flight> parked_;
  std::array<Station, 2> stations_{Station{ThreadName::FirstLane}, Station{ThreadName::SecondLane}};
};

}  // namespace millrace::engine
