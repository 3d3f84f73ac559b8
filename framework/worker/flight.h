// A task in this worker's hands: from before its claim is sent until the outcome of its settle is known.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "framework/store/task_transaction.h"
#include "framework/task/outcome.h"
#include "framework/task/task.h"
#include "framework/worker/standing.h"

namespace millrace {

class FlightHost;

// Shared by the lane, the watchdog and the settler; what is not atomic is constant.
struct Flight {
  Flight(FlightHost& shard_host, std::string shard_name, Task claimed, std::shared_ptr<Standing> life,
         bool alone)
      : host(shard_host),
        shard(std::move(shard_name)),
        task(std::move(claimed)),
        standing(std::move(life)),
        solo(alone) {}

  FlightHost& host;
  const std::string shard;
  const Task task;
  const std::shared_ptr<Standing> standing;  // the life under which it was claimed
  const bool solo;                           // it runs with nothing beside it
  std::atomic<bool> cancel{false};
  std::atomic<bool> running{false};
};
using FlightPtr = std::shared_ptr<Flight>;

// How an attempt ended, on its way to the settler. `verify`: the COMMIT of its own transaction has an unknown
// outcome; the settlement is to be written only if the attempt still runs.
struct Landing {
  FlightPtr flight;
  Settlement settlement;
  bool verify = false;
};

// What a flight needs of its shard. Every flight ends in exactly one Land or Settled. Thread-safe; outlives
// the flight.
class FlightHost {
 public:
  virtual ~FlightHost() = default;
  // The worker asks its handlers to end now.
  virtual bool StopAsked() const = 0;
  virtual std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) = 0;
  virtual void SaveProgress(const Flight& flight, std::string progress) = 0;
  // Not to be started for now: the shard's beat is late. It comes back to the lane once the beat has
  // succeeded.
  virtual void Park(FlightPtr flight) = 0;
  // The attempt has ended: to be settled. Never waits.
  virtual void Land(Landing landing) = 0;
  // The attempt was settled by its own transaction.
  virtual void Settled(const Flight& flight, const Settlement& settlement) = 0;
};

}  // namespace millrace
