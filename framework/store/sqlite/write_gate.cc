#include "framework/store/sqlite/write_gate.h"

#include <algorithm>

namespace millrace {

bool WriteGate::Enter(Micros limit) {
  const BootTime deadline = BootClock::now() + limit;
  MutexLock lock(mutex_);
  const std::uint64_t mine = next_ticket_++;
  while (serving_ != mine) {
    const Micros left = deadline - BootClock::now();
    if (left <= Micros(0)) {
      given_up_.push_back(mine);
      return false;
    }
    turn_.WaitFor(mutex_, left);
  }
  return true;
}

void WriteGate::Leave() {
  MutexLock lock(mutex_);
  ++serving_;
  SkipGivenUp();
  turn_.NotifyAll();
}

void WriteGate::SkipGivenUp() {
  while (true) {
    const auto found = std::find(given_up_.begin(), given_up_.end(), serving_);
    if (found == given_up_.end()) return;
    given_up_.erase(found);
    ++serving_;
  }
}

}  // namespace millrace
