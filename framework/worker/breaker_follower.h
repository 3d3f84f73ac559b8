// Brings a worker's breakers together with what the cluster and operators say of them.
#pragma once

#include <string>
#include <vector>

#include "framework/mill/admission.h"
#include "framework/worker/control_plane.h"
#include "framework/worker/worker_status.h"

namespace millrace::engine {

// Used by one thread.
class BreakerFollower {
 public:
  BreakerFollower(const Clock& clock, ControlPlane& control, const Admission& admission)
      : clock_(clock), control_(control), admission_(admission) {}

  // To be called again and again. Costs nothing where no task type has a breaker.
  template <class PauseNames>
  void Follow(PauseNames names_of_pauses) {
    const auto breakers = admission_.Breakers();
    if (!breakers.empty() || asked_) Follow(breakers, names_of_pauses());
  }
  // The worker starts nothing more.
  void Stop() { control_.AskOfBreakers({}); }

 private:
  void Follow(const std::map<std::string, std::shared_ptr<BreakerPolicy>>& breakers,
              const std::vector<std::string>& pauses);

  const Clock& clock_;
  ControlPlane& control_;
  const Admission& admission_;
  bool asked_ = false;
};

// How they are; by handler.
std::vector<BreakerStatus> BreakersIn(const Admission& admission, BootTime now);

}  // namespace millrace::engine
