#include "framework/mill/attempt.h"

#include "framework/mill/engine_outcome.h"
#include "framework/task/retry_ladder.h"

namespace millrace::engine {

void GiveBack(const AttemptPtr& attempt) {
  if (attempt->lease->Alive()) {
    attempt->host->Ended({attempt, Settle({}, attempt->task, GivenBack(), 0)});
  } else {
    attempt->host->Drop(*attempt);
  }
}

}  // namespace millrace::engine
