#include "framework/worker/solo_gate.h"

namespace millrace {

bool SoloGate::Enter(std::size_t count) {
  MutexLock lock(mutex_);
  if (!suspect_.empty()) return false;
  inside_ += count;
  return true;
}

bool SoloGate::EnterClaimed() {
  MutexLock lock(mutex_);
  ++inside_;
  return suspect_.empty();
}

void SoloGate::Leave(std::size_t count) {
  MutexLock lock(mutex_);
  inside_ -= count;
}

bool SoloGate::EnterAlone(const std::string& suspect) {
  MutexLock lock(mutex_);
  if (suspect_.empty()) suspect_ = suspect;
  return suspect_ == suspect && inside_ == 0;
}

void SoloGate::LeaveAlone() {
  MutexLock lock(mutex_);
  suspect_.clear();
}

void SoloGate::Withdraw(const std::string& suspect) {
  MutexLock lock(mutex_);
  if (suspect_ == suspect) suspect_.clear();
}

bool SoloGate::Wanted() const {
  MutexLock lock(mutex_);
  return !suspect_.empty();
}

}  // namespace millrace
