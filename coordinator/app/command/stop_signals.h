// SIGTERM, SIGINT and SIGHUP (the terminal is closed) as a count that a loop looks at: no work is done in
// signal handlers.
#pragma once

#include <functional>
#include <string>

#include "framework/base/clock.h"
#include "framework/base/result.h"

namespace millrace::engine {

// One event often sends several: systemd's SendSIGHUP= a SIGHUP right after SIGTERM, a terminal that closes
// one by its shell and one by the system. Those within so long of the first are the same wish, and not
// counted.
inline constexpr Micros kOneStop = std::chrono::milliseconds(300);

// From now on they are counted instead of ending the process; SIGHUP stays ignored where it is (nohup).
void CatchStopSignals();
int StopSignalsSeen();
// Sleeps in short steps, so that a signal is seen at once; not at all where one was seen already.
void RestUnlessStopped(Micros time);
// Tries to reach a server until it succeeds, with a word at the beginning and every half minute. Unavailable:
// it was away for all of `limit`; Cancelled: a signal was seen. Anything else that is wrong stays wrong, and
// ends the wait at once.
Status ReachPatiently(const std::string& server, Micros limit,
                      const std::function<Status(Micros left)>& reach);

}  // namespace millrace::engine
