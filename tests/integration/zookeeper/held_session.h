// A session_holder under way: a client of the tree that can be paused and killed. Header only.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "framework/base/clock.h"

namespace millrace::engine {

// Not thread-safe. Returns from its making when the ephemeral node is there.
class HeldSession {
 public:
  HeldSession(const std::string& servers, const std::string& cluster, Micros timeout,
              const std::string& path) {
    const auto text = std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count());
    int input[2];
    int output[2];
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0) std::abort();
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      dup2(input[0], STDIN_FILENO);
      dup2(output[1], STDOUT_FILENO);
      execl(MILLRACE_SESSION_HOLDER, "session_holder", servers.c_str(), cluster.c_str(), text.c_str(),
            path.c_str(), nullptr);
      _exit(127);
    }
    close(input[0]);
    close(output[1]);
    to_ = input[1];
    from_ = fdopen(output[0], "r");
    ReadLine();
  }
  ~HeldSession() {
    Kill();
    close(to_);
    std::fclose(from_);
  }
  HeldSession(const HeldSession&) = delete;
  HeldSession& operator=(const HeldSession&) = delete;

  void Kill() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  void Pause() {
    kill(pid_, SIGSTOP);
    waitpid(pid_, nullptr, WUNTRACED);
  }
  void Resume() { kill(pid_, SIGCONT); }

  // Asks for a report, which may be done before a paused one is resumed; the answer is `AGE_MS STATUS`.
  void Ask() {
    if (write(to_, "\n", 1) != 1) std::abort();
  }
  std::string ReadLine() {
    char line[128] = "";
    if (std::fgets(line, sizeof line, from_) == nullptr) return "";
    const std::string text = line;
    return text.substr(0, text.find('\n'));
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1;
  std::FILE* from_ = nullptr;
};

}  // namespace millrace::engine
