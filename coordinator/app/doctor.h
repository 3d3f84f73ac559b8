// What `millrace doctor` looks at: every shard, ZooKeeper and this host, whoever of them is away.
#pragma once

#include <string>

#include "coordinator/app/command/settings.h"
#include "coordinator/doctor/facts.h"
#include "framework/base/clock.h"

namespace millrace::engine {

struct DoctorOptions {
  CommonFlags common;
  bool scratch = false;  // make tables of its own, and explain every statement on them
};

// Blocks for some seconds: what has to be seen twice is watched. Writes nothing, but for `scratch`. Invalid:
// the flags or the configuration file are wrong.
Result<doctor::Examination> Examine(const DoctorOptions& options, const Clock& clock);

}  // namespace millrace::engine
