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
// Until the next one or the next WakeMain, or for `limit`, a minute at most; at once where one came since the
// last call. The main thread's.
void AwaitStopSignal(Micros limit);
// Ends that wait. Any thread.
void WakeMain();
// Sleeps for so long, or until a signal is seen; not at all where one was seen already. The main thread's,
// too.
void RestUnlessStopped(Micros time);
// Tries to reach a server until it succeeds, with a word at the beginning and every half minute. Unavailable:
// it was away for all of `limit`; Cancelled: a signal was seen. Anything else that is wrong stays wrong, and
// ends the wait at once.
Status ReachPatiently(const std::string& server, Micros limit,
                      const std::function<Status(Micros left)>& reach);

}  // namespace millrace::engine
