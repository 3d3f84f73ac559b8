// One call of a handler from its start to its end: runs it, decides what its outcomes and the state of its
// transaction mean together, and hands every attempt on to be settled, or commits it with its own
// transaction.
#pragma once

#include <memory>
#include <vector>

#include "framework/base/random.h"
#include "framework/worker/call.h"
#include "framework/worker/flight.h"
#include "framework/worker/lane_setup.h"

namespace millrace {

// Thread-safe where it says so; one for each lane thread, used on that thread.
class AttemptRunner {
 public:
  // Called around each run of the handler's code, on the handler's thread. `Finish` is false when the
  // watchdog has given the call up meanwhile: its attempts have ended, and whatever it did must not be
  // committed.
  class Watch {
   public:
    virtual ~Watch() = default;
    virtual void Begin(const std::vector<FlightPtr>& flights, BootTime deadline) = 0;
    virtual bool Finish() = 0;
  };

  AttemptRunner(const Clock& clock, Watch& watch)
      : clock_(clock), watch_(watch), random_(Random::FromSystem()) {}

  // Runs the handler on these flights, all of one shard. False: nothing has ended, since one of them spoils
  // the call for all; run each of them alone.
  bool Run(const LaneSetup& setup, const std::vector<FlightPtr>& flights, TaskTransaction& transaction);

 private:
  // One call: who is in it and by what rules.
  struct Round {
    const LaneSetup& setup;
    const std::vector<FlightPtr>& flights;
    TaskTransaction& transaction;
    bool last = false;  // it is not run once more
  };
  enum class Next { Ended, RunAgain, OneByOne, GivenUp };
  Next RunOnce(const Round& round);
  Next Conclude(const Round& round, std::vector<Outcome> outcomes, const std::string& sql_error);
  bool ShardAnswers(const Flight& flight) const;
  Next Commit(const Round& round, const std::vector<Outcome>& outcomes);
  void LandAll(const Round& round, const std::vector<Outcome>& outcomes);
  void LandAll(const Round& round, const Outcome& outcome);

  const Clock& clock_;
  Watch& watch_;
  Random random_;
};

}  // namespace millrace
