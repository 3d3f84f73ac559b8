#include "framework/store/sqlite/write_gate.h"

#include <algorithm>

namespace millrace::engine::sqlite {
namespace {

// A statement that runs beyond the term is interrupted by itself within this time.
constexpr Micros kNextTry = std::chrono::milliseconds(10);

}  // namespace

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
    const Micros wait = Overdue(left);
    if (serving_ != mine) turn_.WaitFor(mutex_, wait);
  }
  return true;
}

void WriteGate::SetTerm(GateTenant& tenant, BootTime end) {
  MutexLock lock(mutex_);
  term_ = Term{&tenant, end};
  turn_.NotifyAll();  // those who wait know of no end yet
}

// The tenant can't go away under our hands: to leave it needs our mutex, and after that its own, which we
// hold.
Micros WriteGate::Overdue(Micros patience) {
  if (!term_) return patience;
  const Micros left = term_->end - BootClock::now();
  if (left > Micros(0)) return std::min(patience, left);
  GateTenant& tenant = *term_->tenant;
  if (!tenant.TryHold()) return std::min(patience, kNextTry);
  mutex_.Unlock();
  tenant.Evict();
  mutex_.Lock();
  return std::min(patience, kNextTry);
}

void WriteGate::Leave() {
  MutexLock lock(mutex_);
  term_.reset();
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

}  // namespace millrace::engine::sqlite
