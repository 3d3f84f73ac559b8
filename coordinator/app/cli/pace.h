// How fast an act on many goes: in steps, with pauses between them, so that neither the database nor what is
// behind it is flooded. Pure.
#pragma once

#include <cstddef>
#include <string>

#include "framework/base/clock.h"
#include "framework/base/result.h"

namespace millrace::engine {

inline constexpr double kBulkRate = 5000;  // tasks a second, unless somebody says otherwise

// `500/s`, `500` or `30/m`; Invalid for anything else, and for nothing at all.
Result<double> ParseRate(const std::string& text);

class Pace {
 public:
  // `most`: no step has more.
  Pace(double per_second, std::size_t most);

  // Tasks of a step: about a quarter of a second's, and at least one.
  std::size_t StepSize() const { return step_; }
  // How long to rest after a step of `count` tasks: until their time is over, and at least as long as the
  // step took, so that half of the time nothing is asked of the database.
  Micros Rest(std::size_t count, BootTime began, BootTime ended) const;

 private:
  double per_second_;
  std::size_t step_;
};

}  // namespace millrace::engine
