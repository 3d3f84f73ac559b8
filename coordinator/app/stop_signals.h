// SIGTERM and SIGINT as a count that a loop looks at: no work is done in signal handlers.
#pragma once

namespace millrace::engine {

// From now on the two signals are counted instead of ending the process.
void CatchStopSignals();
int StopSignalsSeen();

}  // namespace millrace::engine
