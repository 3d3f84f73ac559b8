// How a strand that has a thread of its own reaches the outside.
#pragma once

#include <chrono>

#include "framework/mill/step.h"
#include "framework/threads/pulse.h"
#include "framework/threads/signal.h"

namespace millrace::engine {

// A statement has the database's time: each read of a socket is bounded by 20 s, and fails then, so that a
// strand beside a database that is away, frozen or slow goes round all the same. One that takes longer than
// this is held up by something else.
inline constexpr Micros kLongestAnswer = std::chrono::minutes(5);

// A port as a thread has it: what is asked for is done at once, on the strand's own thread, so that no strand
// is ever suspended.
template <class Port>
class Blocking : public Port {
 public:
  Reply<bool> Rest(Micros limit) final {
    pulse_.Within(limit);
    const bool woken = signal_.WaitFor(limit);
    pulse_.Now();
    return woken;
  }
  void Wake() final { signal_.Notify(); }
  Pulse& pulse() { return pulse_; }

 protected:
  template <class Statement>
  auto Ask(Statement statement) {
    struct Answered {
      ~Answered() { pulse.Now(); }
      Pulse& pulse;
    };
    pulse_.Within(kLongestAnswer);
    const Answered answered{pulse_};
    return statement();
  }
  template <class Meter, class Statement>
  auto Ask(Meter& meter, Statement statement) {
    return Ask([&] { return meter.Ask(statement); });
  }

 private:
  Signal signal_;
  Pulse pulse_;
};

}  // namespace millrace::engine
