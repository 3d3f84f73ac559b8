#include "keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <initializer_list>

namespace exec_handler {
namespace {

constexpr int kWorkerDied = SIGUSR1;
constexpr int kTryLater = 75;  // EX_TEMPFAIL of sysexits.h

[[noreturn]] void GiveUp(int code, int errors, const char* why) {
  [[maybe_unused]] const ssize_t written = ::write(errors, why, std::strlen(why));
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
    GiveUp(kTryLater, launch.err, "the worker has no descriptors left for the program\n");
  if (::syscall(SYS_close_range, 3U, ~0U, 0U) != 0) {
    const long limit = ::sysconf(_SC_OPEN_MAX);
    for (int fd = 3; fd < limit; ++fd) ::close(fd);
  }
}

void DefaultSignals() {
  for (int signal = 1; signal < NSIG; ++signal) ::signal(signal, SIG_DFL);
}

[[noreturn]] void RunProgram(const Launch& launch, pid_t keeper) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != keeper) ::_exit(kCannotRun);
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (launch.directory == nullptr || ::chdir(launch.directory) == 0) {
    ::execve(launch.program, launch.arguments, launch.environment);
  }
  GiveUp(kCannotRun, STDERR_FILENO, "the program or its directory can't be opened\n");
}

// The group's other members do not outlive the program. The keeper ends as the program did, by the same
// signal: a code of its own for it would be one that programs end with, too.
[[noreturn]] void End(pid_t program, int status) {
  ::kill(-program, SIGKILL);
  if (WIFSIGNALED(status)) {
    ::prctl(PR_SET_DUMPABLE, 0);  // its core would be one of the worker's memory
    sigset_t fatal;
    sigemptyset(&fatal);
    sigaddset(&fatal, WTERMSIG(status));
    ::sigprocmask(SIG_UNBLOCK, &fatal, nullptr);
    ::kill(::getpid(), WTERMSIG(status));
  }
  ::_exit(WEXITSTATUS(status));
}

}  // namespace

void Keep(const Launch& launch) {
  DefaultSignals();
  // Tied to the thread that forked, which waits for this process as long as it lives.
  ::prctl(PR_SET_PDEATHSIG, kWorkerDied);
  if (::getppid() != launch.worker) ::_exit(kCannotRun);
  TakeDescriptors(launch);
  const pid_t keeper = ::getpid();
  const pid_t program = Fork();
  if (program == 0) RunProgram(launch, keeper);
  if (program < 0) GiveUp(kTryLater, STDERR_FILENO, "the system has no process left for the program\n");
  ::setpgid(program, program);  // whoever of the two is first
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(fd);

  sigset_t awaited;
  sigemptyset(&awaited);
  for (int signal : {SIGCHLD, SIGTERM, kKillSignal, kWorkerDied}) sigaddset(&awaited, signal);
  while (true) {
    int status = 0;
    if (::waitpid(program, &status, WNOHANG) == program) End(program, status);
    const int signal = ::sigwaitinfo(&awaited, nullptr);
    if (signal == SIGTERM) ::kill(-program, SIGTERM);
    if (signal == kKillSignal || signal == kWorkerDied) ::kill(-program, SIGKILL);
    if (signal == kWorkerDied) ::_exit(kCannotRun);
  }
}

}  // namespace exec_handler
