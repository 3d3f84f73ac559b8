#include "keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <initializer_list>

namespace exec_handler {
namespace {

constexpr int kWorkerDied = SIGUSR1;
constexpr int kTryLater = 75;  // EX_TEMPFAIL of sysexits.h

[[noreturn]] void GiveUp(int code, int errors, std::initializer_list<const char*> why) {
  for (const char* piece : why) {
    [[maybe_unused]] const ssize_t written = ::write(errors, piece, std::strlen(piece));
  }
  ::_exit(code);
}

// Puts the three descriptors in their places and closes every other one: neither a connection to a database
// nor a lock of the worker may live on in a child.
void TakeDescriptors(const Launch& launch) {
  // First out of the way of each other.
  const int in = ::fcntl(launch.in, F_DUPFD, 10);
  const int out = ::fcntl(launch.out, F_DUPFD, 10);
  const int err = ::fcntl(launch.err, F_DUPFD, 10);
  if (::dup2(in, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 || ::dup2(err, STDERR_FILENO) < 0)
    GiveUp(kTryLater, launch.err, {"the worker has no descriptors left for the program\n"});
  if (::syscall(SYS_close_range, 3U, ~0U, 0U) != 0) {
    const long limit = ::sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < limit; ++fd) ::close(fd);
  }
}

void DefaultSignals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
}

sigset_t SetOf(std::initializer_list<int> signals) {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : signals) sigaddset(&set, signal);
  return set;
}

[[noreturn]] void RunProgram(const Launch& launch, pid_t keeper) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper) ::_exit(kCannotRun);
  ::setpgid(0, 0);
  const sigset_t none = SetOf({});
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (launch.directory != nullptr && ::chdir(launch.directory) != 0) {
    GiveUp(kCannotRun, STDERR_FILENO,
           {"the directory '", launch.directory, "' can't be entered: ", ::strerrordesc_np(errno), "\n"});
  }
  ::execve(launch.program, launch.arguments, launch.environment);
  GiveUp(kCannotRun, STDERR_FILENO,
         {"the program '", launch.program, "' can't be started: ", ::strerrordesc_np(errno),
          errno == ENOEXEC ? "; begin it with a #! line\n" : "\n"});
}

// Of a clock that nobody sets.
std::int64_t NowMs() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

// Reaps the group's dead, too: else process 1 gets them, and a worker that is process 1 reaps none of them.
// A member that hangs in the kernel dies when it returns from there, which may be never. So it is waited for
// less than the 0.3 s that the handler keeps for the end of a call, and is process 1's then.
void KillGroup(pid_t group) {
  constexpr std::int64_t kPatienceMs = 200;
  ::kill(-group, SIGKILL);
  const sigset_t death = SetOf({SIGCHLD});
  const std::int64_t until = NowMs() + kPatienceMs;
  pid_t ended = 0;
  while ((ended = ::waitpid(-group, nullptr, WNOHANG)) >= 0) {
    if (ended > 0) continue;
    const std::int64_t left = until - NowMs();
    const timespec rest{0, static_cast<long>(left) * 1'000'000};
    if (left <= 0 || ::sigtimedwait(&death, nullptr, &rest) < 0) break;
  }
  // Who has left the group may live on; those of them who are dead are reaped.
  while (::waitpid(-1, nullptr, WNOHANG) > 0) continue;
}

// The group's other members do not outlive the program. The keeper ends as the program did, by the same
// signal: a code of its own for it would be one that programs end with, too.
[[noreturn]] void End(pid_t program, int status) {
  KillGroup(program);
  if (WIFSIGNALED(status)) {
    ::prctl(PR_SET_DUMPABLE, 0);  // its core would be one of the worker's memory
    const sigset_t fatal = SetOf({WTERMSIG(status)});
    ::sigprocmask(SIG_UNBLOCK, &fatal, nullptr);
    ::kill(::getpid(), WTERMSIG(status));
  }
  ::_exit(WEXITSTATUS(status));
}

// True once the program has ended, with its status. The others that it reaps are those whose parents ended
// before them.
bool HasEnded(pid_t program, int& status) {
  pid_t ended = 0;
  while ((ended = ::waitpid(-1, &status, WNOHANG)) > 0) {
    if (ended == program) return true;
  }
  return false;
}

}  // namespace

void Keep(const Launch& launch) {
  DefaultSignals();
  // Tied to the thread that forked, which waits for this process as long as it lives.
  ::prctl(PR_SET_PDEATHSIG, kWorkerDied);
  if (::getppid() != launch.worker) ::_exit(kCannotRun);
  TakeDescriptors(launch);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t keeper = ::getpid();
  const pid_t program = Fork();
  if (program == 0) RunProgram(launch, keeper);
  if (program < 0) GiveUp(kTryLater, STDERR_FILENO, {"the system has no process left for the program\n"});
  ::setpgid(program, program);  // whoever of the two is first
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);

  const sigset_t awaited = SetOf({SIGCHLD, SIGTERM, kKillSignal, kWorkerDied});
  while (true) {
    int status = 0;
    if (HasEnded(program, status)) End(program, status);
    const int signal = ::sigwaitinfo(&awaited, nullptr);
    if (signal == SIGTERM) ::kill(-program, SIGTERM);
    if (signal == kKillSignal) ::kill(-program, SIGKILL);
    if (signal == kWorkerDied) {
      KillGroup(program);
      ::_exit(kCannotRun);
    }
  }
}

}  // namespace exec_handler
