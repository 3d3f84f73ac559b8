#include "process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "keeper.h"

namespace exec_handler {
namespace {

using SteadyTime = std::chrono::steady_clock::time_point;

constexpr int kPollMs = 20;
// What is read of a stream before the stop is looked at again.
constexpr std::size_t kMostAtOnce = 64 * 1024;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { Close(); }
  void Close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

struct Pipe {
  Fd read;
  Fd write;
  bool Open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = Fd(ends[0]);
    write = Fd(ends[1]);
    return true;
  }
};

void SetNonBlocking(int fd) { ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK); }

std::size_t Capacity(const Fd& pipe) {
  const int size = ::fcntl(pipe.get(), F_GETPIPE_SZ);
  return size > 0 ? static_cast<std::size_t>(size) : kMostAtOnce;
}

// A program that does not read its input must not kill the worker: SIGPIPE goes to the writing thread, which
// holds it off and takes it back.
class SigpipeHeldOff {
 public:
  SigpipeHeldOff() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~SigpipeHeldOff() {
    const timespec at_once{};
    while (::sigtimedwait(&pipe_, nullptr, &at_once) == SIGPIPE) continue;
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  SigpipeHeldOff(const SigpipeHeldOff&) = delete;
  SigpipeHeldOff& operator=(const SigpipeHeldOff&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
};

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

void Cut(std::string& text, const Kept& kept) {
  if (text.size() <= kept.last) return;
  const std::size_t from = text.size() - kept.last;
  std::size_t before = text.rfind("\n{", from - 1);
  if (before == std::string::npos && !text.starts_with('{')) before = text.rfind('\n', from - 1);
  const std::size_t line = before + 1;  // npos: the text's first
  if (from - line > kept.head) text.replace(line + kept.head, from - line - kept.head, "…");
  text.erase(0, line);
}

// False at the end of the stream.
bool ReadTail(const Fd& from, std::string& tail, const Kept& kept, std::size_t at_once) {
  return Drain([&](char* buffer, std::size_t size) { return ::read(from.get(), buffer, size); }, at_once,
               [&](std::string_view more) {
                 tail.append(more);
                 if (tail.size() > 2 * kept.last) Cut(tail, kept);
               });
}

// The program under way, seen from the worker.
class Running {
 public:
  Running(const std::function<bool()>& should_stop, std::chrono::milliseconds grace, SteadyTime kill_by)
      : should_stop_(should_stop), grace_(grace), kill_by_(kill_by) {}

  bool Start(const Program& program);
  void Pump(std::string_view input);
  ProgramEnd Finish();

 private:
  void Feed(std::string_view& input);
  void HeedStop(bool stop);

  const std::function<bool()>& should_stop_;
  const std::chrono::milliseconds grace_;
  const SteadyTime kill_by_;
  ProgramEnd end_;
  pid_t keeper_ = -1;
  Fd alive_;  // readable once the keeper has ended
  Pipe in_, out_, err_;
  std::optional<SteadyTime> kill_at_;
  bool killed_ = false;
};

bool Running::Start(const Program& program) {
  std::vector<std::string> argument_texts = program.arguments;
  argument_texts.insert(argument_texts.begin(), program.path);
  std::vector<std::string> environment_texts = program.environment;
  const std::vector<char*> arguments = Pointers(argument_texts);
  const std::vector<char*> environment = Pointers(environment_texts);
  if (!in_.Open() || !out_.Open() || !err_.Open()) return false;
  const Launch launch{program.path.c_str(), arguments.data(),
                      environment.data(),   program.directory.empty() ? nullptr : program.directory.c_str(),
                      in_.read.get(),       out_.write.get(),
                      err_.write.get(),     ::getpid()};
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  keeper_ = Fork();
  if (keeper_ == 0) Keep(launch);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (keeper_ < 0) return false;
  alive_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, keeper_, 0)));
  in_.read.Close();
  out_.write.Close();
  err_.write.Close();
  for (const Fd* fd : {&in_.write, &out_.read, &err_.read}) SetNonBlocking(fd->get());
  return true;
}

void Running::Feed(std::string_view& input) {
  while (!input.empty()) {
    const ssize_t put = ::write(in_.write.get(), input.data(), input.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0 && errno == EAGAIN) return;
    if (put < 0) break;  // it does not want its input: its own affair
    input.remove_prefix(static_cast<std::size_t>(put));
  }
  in_.write.Close();
}

void Running::HeedStop(bool stop) {
  const auto now = std::chrono::steady_clock::now();
  if (!kill_at_ && stop) {
    end_.stopped = true;
    kill_at_ = std::min<SteadyTime>(now + grace_, kill_by_);
    ::kill(keeper_, SIGTERM);
  }
  if (kill_at_ && !killed_ && now >= *kill_at_) {
    killed_ = true;
    ::kill(keeper_, kKillSignal);
  }
}

void Running::Pump(std::string_view input) {
  const SigpipeHeldOff held;
  while (true) {
    // A descriptor of -1 is ignored by poll.
    pollfd watched[] = {{alive_.get(), POLLIN, 0},
                        {in_.write.get(), POLLOUT, 0},
                        {out_.read.get(), POLLIN, 0},
                        {err_.read.get(), POLLIN, 0}};
    ::poll(watched, 4, kPollMs);
    if (watched[1].revents != 0) Feed(input);
    if (out_.read.get() >= 0 && !ReadTail(out_.read, end_.output, kKeptOutput, kMostAtOnce))
      out_.read.Close();
    if (err_.read.get() >= 0 && !ReadTail(err_.read, end_.errors, kKeptErrors, kMostAtOnce))
      err_.read.Close();
    const bool stop = should_stop_();  // first: what has ended by then has ended by itself
    // It has ended, and with it all that wrote; its exit code is left for Finish to read.
    siginfo_t info{};
    const int waited = ::waitid(P_PID, static_cast<id_t>(keeper_), &info, WEXITED | WNOHANG | WNOWAIT);
    if (info.si_pid == keeper_ || (waited != 0 && errno == ECHILD)) return;
    HeedStop(stop);
  }
}

// What the pipe held when the program ended; one that left its process group may write to it for ever.
ProgramEnd Running::Finish() {
  if (out_.read.get() >= 0) ReadTail(out_.read, end_.output, kKeptOutput, Capacity(out_.read));
  if (err_.read.get() >= 0) ReadTail(err_.read, end_.errors, kKeptErrors, Capacity(err_.read));
  int status = 0;
  while (::waitpid(keeper_, &status, 0) < 0) {
    if (errno == EINTR) continue;
    end_.reaped = true;
    break;
  }
  if (WIFSIGNALED(status)) {
    end_.signal = WTERMSIG(status);
  } else {
    end_.code = WEXITSTATUS(status);
  }
  Cut(end_.output, kKeptOutput);
  Cut(end_.errors, kKeptErrors);
  return std::move(end_);
}

}  // namespace

ProgramEnd RunProgram(const Program& program, const std::string& input,
                      const std::function<bool()>& should_stop, std::chrono::milliseconds grace,
                      SteadyTime kill_by) {
  Running running(should_stop, grace, kill_by);
  if (!running.Start(program)) {
    ProgramEnd end;
    end.problem = std::string("it can't be started: ") + std::strerror(errno);
    return end;
  }
  running.Pump(input);
  return running.Finish();
}

}  // namespace exec_handler
