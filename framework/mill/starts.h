// Starts of attempts, from the gates of their types.
#pragma once

#include <vector>

#include "framework/mill/attempt.h"

namespace millrace::engine {

// Takes a start for each that needs one, in their order. From the first on for which there is none they are
// taken out, and returned.
std::vector<AttemptPtr> TakeStarts(std::vector<AttemptPtr>& attempts, BootTime now);
// It has not begun, or is to begin anew some time: others may have its start, and it takes another then.
void ReturnStart(Attempt& attempt);

}  // namespace millrace::engine
