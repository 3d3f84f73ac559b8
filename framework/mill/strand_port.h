// What every strand of the mill asks of whoever drives it.
#pragma once

#include "framework/base/clock.h"
#include "framework/mill/step.h"

namespace millrace::engine {

// A strand's way to the outside. Its requests belong to the strand; Wake is thread-safe.
class StrandPort {
 public:
  virtual ~StrandPort() = default;
  // Rests until Wake or for `limit`; a Wake before it ends the next rest at once. True if woken.
  virtual Reply<bool> Rest(Micros limit) = 0;
  virtual void Wake() = 0;
};

}  // namespace millrace::engine
