// A strand's port in a test: the strand rests whenever it has nothing to do, until the test lets time go by.
#pragma once

#include <memory>
#include <utility>

#include "framework/mill/step.h"
#include "framework/testing/manual_clock.h"

namespace millrace::engine {

template <class Port>
class Driven : public Port {
 public:
  explicit Driven(ManualClock& clock) : clock_(clock) {}

  Reply<bool> Rest(Micros limit) override {
    rest_ = std::make_shared<Mail<bool>>();
    until_ = clock_.Now() + limit;
    return Reply<bool>(rest_);
  }
  void Wake() override { woken_ = true; }

  // Lets time go by, and the strand work whenever it is due.
  void Go(Micros span) {
    const BootTime end = clock_.Now() + span;
    while (rest_ && (woken_ || until_ <= end)) {
      if (!woken_ && until_ > clock_.Now()) clock_.Advance(until_ - clock_.Now());
      std::exchange(rest_, nullptr)->Deliver(std::exchange(woken_, false));
    }
    if (end > clock_.Now()) clock_.Advance(end - clock_.Now());
  }

 private:
  ManualClock& clock_;
  std::shared_ptr<Mail<bool>> rest_;  // null: the strand has ended
  BootTime until_{};
  bool woken_ = false;
};

}  // namespace millrace::engine
