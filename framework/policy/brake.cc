#include "framework/policy/brake.h"

namespace millrace::engine {

void Brake::Answered(BootTime now, Micros took, Micros limit) {
  const bool outage = failing_ && now - *failing_ >= kOutage;
  failing_.reset();
  if (outage) {
    speed_ = kLeast;
    doubles_ = true;
    raised_ = lowered_ = now;
    return;
  }
  if (limit > Micros(0) && took > limit) {
    if (speed_ < 1 && now - lowered_ < kStep) return;
    speed_ = std::max(speed_ / 2, kLeast);
    doubles_ = false;
    raised_ = lowered_ = now;
    return;
  }
  if (speed_ == 1) return;
  if (limit == Micros(0) && !doubles_) speed_ = 1;  // the limit is gone
  if (now - raised_ < kStep) return;
  raised_ = now;
  speed_ = std::min(doubles_ ? speed_ * 2 : speed_ + kRise, 1.0);
  doubles_ = doubles_ && speed_ < 1;
}

void Brake::Failed(BootTime now) {
  if (!failing_) failing_ = now;
}

Micros Brake::RestAfter(Micros worked) const {
  if (speed_ == 1) return Micros(0);
  const double rest = static_cast<double>(worked.count()) * (1 / speed_ - 1);
  return std::min(Micros(static_cast<Micros::rep>(rest)), kLongestPause);
}

}  // namespace millrace::engine
