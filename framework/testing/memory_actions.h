// What people do to one task of a memory shard.
#pragma once

#include "framework/testing/memory_state.h"

namespace millrace::engine {

// Whether the task was there in a state that the action changes.
bool ActOn(MemoryState& state, TaskAction action, const TaskKey& key, WallTime now);

}  // namespace millrace::engine
