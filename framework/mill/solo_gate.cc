#include "framework/mill/solo_gate.h"

namespace millrace::engine {
namespace {

constexpr Micros kPatience = std::chrono::seconds(60);          // for those inside to leave
constexpr Micros kLongestStretch = std::chrono::seconds(10);    // of suspects in succession
constexpr Micros kFirstEntry = std::chrono::milliseconds(500);  // scanners look, and find that they may enter

}  // namespace

bool SoloGate::Enter(std::size_t count) {
  MutexLock lock(mutex_);
  if (!suspect_.empty()) return false;
  inside_ += count;
  stretch_.reset();
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

bool SoloGate::IsOthersTurn(BootTime now) const {
  return now < others_until_ && (inside_ > 0 || now < others_from_ + kFirstEntry);
}

void SoloGate::EndStretch(BootTime now) {
  others_from_ = now;
  others_until_ = now + (now - stretch_.value_or(now));
  stretch_.reset();
}

bool SoloGate::EnterAlone(const std::string& suspect, Micros others_take) {
  const BootTime now = clock_.Now();
  MutexLock lock(mutex_);
  if (suspect_.empty()) {
    if (others_take > kPatience || IsOthersTurn(now)) return false;
    suspect_ = suspect;
    asked_ = now;
    if (!stretch_) stretch_ = now;
  }
  if (suspect_ != suspect) return false;
  if (inside_ == 0) {
    alone_ = true;
    return true;
  }
  if (now - asked_ > kPatience) {
    suspect_.clear();
    EndStretch(now);
  }
  return false;
}

void SoloGate::LeaveAlone() {
  const BootTime now = clock_.Now();
  MutexLock lock(mutex_);
  suspect_.clear();
  alone_ = false;
  if (stretch_ && now - *stretch_ >= kLongestStretch) EndStretch(now);
}

void SoloGate::Withdraw(const std::string& suspect) {
  MutexLock lock(mutex_);
  if (suspect_ == suspect) suspect_.clear();
}

void SoloGate::WithdrawAll(const std::string& shard) {
  MutexLock lock(mutex_);
  if (!alone_ && suspect_.starts_with(shard + "/")) suspect_.clear();
}

bool SoloGate::Wanted() const {
  MutexLock lock(mutex_);
  return !suspect_.empty();
}

}  // namespace millrace::engine
