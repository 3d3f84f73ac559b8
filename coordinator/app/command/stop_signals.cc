#include "coordinator/app/command/stop_signals.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <optional>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"

namespace millrace::engine {
namespace {

// Signals may come to several threads at once.
std::atomic<int> seen{0};
std::atomic<int> arrivals{-1};        // an eventfd: of those that nobody has waited for yet
std::atomic<BootTime::rep> first{0};  // when the first came, since the clock's epoch; 0: none has
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<BootTime::rep>::is_always_lock_free,
              "a signal handler waits for no lock");

void Note(int) {
  const int error = errno;
  const BootTime::rep now = BootClock::now().time_since_epoch().count();
  BootTime::rep before = 0;
  if (first.compare_exchange_strong(before, now) || now - before >= kOneStop.count()) {
    ++seen;
    WakeMain();
  }
  errno = error;
}

}  // namespace

void CatchStopSignals() {
  if (arrivals.load() < 0) arrivals.store(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  struct sigaction action {};
  action.sa_handler = Note;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  struct sigaction inherited {};
  sigaction(SIGHUP, nullptr, &inherited);
  if (inherited.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
}

int StopSignalsSeen() { return seen.load(); }

void WakeMain() { (void)eventfd_write(arrivals.load(), 1); }

void AwaitStopSignal(Micros limit) {
  pollfd on{arrivals.load(), POLLIN, 0};
  const Micros longest =
      on.fd < 0 ? Micros(50'000) : std::chrono::minutes(1);  // nothing is to be heard there
  const auto step = std::chrono::ceil<std::chrono::milliseconds>(std::clamp(limit, Micros(0), longest));
  poll(&on, 1, static_cast<int>(step.count()));
  eventfd_t count = 0;
  (void)eventfd_read(on.fd, &count);
}

void RestUnlessStopped(Micros time) {
  const BootTime end = BootClock::now() + time;
  for (BootTime now = BootClock::now(); StopSignalsSeen() == 0 && now < end; now = BootClock::now())
    AwaitStopSignal(end - now);
}

Status ReachPatiently(const std::string& server, Micros limit,
                      const std::function<Status(Micros left)>& reach) {
  constexpr Micros kBetweenTries = std::chrono::milliseconds(500);
  constexpr Micros kBetweenWords = std::chrono::seconds(30);
  const BootTime end = BootClock::now() + limit;
  std::optional<BootTime> spoken;
  while (true) {
    Status reached = reach(end - BootClock::now());
    if (reached || reached.error().code != ErrorCode::Unavailable) return reached;
    const BootTime now = BootClock::now();
    if (now >= end) {
      return Fail(ErrorCode::Unavailable, reached.error().message + "; gave up after " + ElapsedText(limit) +
                                              ": start the server, or wait longer with --wait");
    }
    if (!spoken || now - *spoken >= kBetweenWords) {
      PrintNote("waiting for " + server + ", for " + ElapsedText(end - now) +
                " at most: " + reached.error().message);
      spoken = now;
    }
    RestUnlessStopped(kBetweenTries);
    if (StopSignalsSeen() > 0) return Fail(ErrorCode::Cancelled, "stopped while waiting for " + server);
  }
}

}  // namespace millrace::engine
