// The planner's input and answer by names: what `cluster plan` reads and what a leader knows.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "coordinator/planner/planner.h"

namespace millrace::engine {

struct NamedWorker {
  std::string id;
  std::uint32_t weight = 1;                               // 1..kMaxWeight
  std::optional<std::vector<std::string>> handlers = {};  // accepts these alone; nullopt: every handler
  std::optional<std::vector<std::string>> slices = {};    // and these slices alone; nullopt: every slice
};

struct NamedSlice {
  std::string id;
  std::string group;
};

// Ids are opaque. Within `workers` and within `slices` they differ. What `current` and the workers' lists say
// of slices that are not in `slices`, and of workers that are not in `workers`, is of no account: they are
// gone.
struct NamedInput {
  std::vector<NamedWorker> workers;
  std::vector<NamedSlice> slices;
  // The handlers of each group; a worker accepts a group if it accepts all of them. A group that is not here
  // is one handler of that name.
  std::map<std::string, std::vector<std::string>> groups;
  std::unordered_map<std::string, std::string> current;  // slice → the worker that owns it
};

// An input whose names became numbers, in their sorted order: the order in which they were given is
// forgotten.
struct NumberedInput {
  std::vector<std::string> workers;  // names by number
  std::vector<std::string> slices;
  PlanInput input;
};

NumberedInput Number(const NamedInput& named);

}  // namespace millrace::engine
