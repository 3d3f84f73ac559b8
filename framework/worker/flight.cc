#include "framework/worker/flight.h"

#include "framework/task/retry_ladder.h"
#include "framework/worker/engine_outcome.h"

namespace millrace::engine {

void GiveBack(const FlightPtr& flight) {
  if (flight->standing->Alive()) {
    flight->host->Land({flight, Settle({}, flight->task, GivenBack(), 0)});
  } else {
    flight->host->Drop(*flight);
  }
}

}  // namespace millrace::engine
