// What a worker tells its leader of the limits: what it makes of its shares, in its status.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "framework/mill/admission.h"

namespace millrace::engine {

// One thread.
class LimitTeller {
 public:
  // As the value of status_key::kLimits: a JSON object.
  std::string Tell(const std::map<std::string, LimitView>& limits);
  // Whether what was told is so different by now that the leader should know; nullopt: there are no limits.
  std::optional<bool> Pressing(const std::map<std::string, LimitView>& limits) const;

 private:
  std::map<std::string, LimitUse> told_;
};

}  // namespace millrace::engine
