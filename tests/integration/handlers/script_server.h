// A server in Python beside this test: started with it, gone with it, also when the test is killed.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace millrace::engine {

class ScriptServer {
 public:
  explicit ScriptServer(const std::string& script, std::vector<std::string> arguments = {}) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    const std::string path =
        std::string(std::getenv("MILLRACE_SOURCE_DIR")) + "/tests/integration/handlers/" + script;
    std::vector<char*> words = {const_cast<char*>("python3"), const_cast<char*>(path.c_str())};
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    process_ = ::fork();
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      ::dup2(ends[1], STDOUT_FILENO);
      // The system's own, for which the distribution's packages are installed.
      ::execv("/usr/bin/python3", words.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    output_ = ::fdopen(ends[0], "r");
    port_ = NextLine();
  }
  ~ScriptServer() {
    Stop();
    std::fclose(output_);
  }
  ScriptServer(const ScriptServer&) = delete;
  ScriptServer& operator=(const ScriptServer&) = delete;

  // What it had printed by then can be read still.
  void Stop() {
    if (process_ < 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

  std::string Address() const { return "127.0.0.1:" + port_; }

  // The next line that it prints; empty once it has ended.
  std::string NextLine() {
    std::string line;
    for (int c = std::fgetc(output_); c != EOF && c != '\n'; c = std::fgetc(output_))
      line += static_cast<char>(c);
    return line;
  }

 private:
  pid_t process_ = -1;
  std::FILE* output_ = nullptr;
  std::string port_;
};

}  // namespace millrace::engine
