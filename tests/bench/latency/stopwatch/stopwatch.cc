// Notes how long ago its task was sent: {"sent_ns": on CLOCK_MONOTONIC, "log": "FILE"} appends the
// nanoseconds to the file, one line a task.
#include <fcntl.h>
#include <millrace/handler.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>
#include <string>

namespace {

class Stopwatch final : public millrace::Handler {
  millrace::Outcome Run(const millrace::Task& task, millrace::Context&) override {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const std::int64_t sent = task.Params().Integer("sent_ns", 0);
    static const int file = open(task.Params().Text("log").c_str(), O_CREAT | O_WRONLY | O_APPEND, 0600);
    const std::string line =
        std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count() - sent) + "\n";
    if (write(file, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
      throw std::runtime_error("can't write the log");
    }
    return millrace::Done();
  }
};

}  // namespace

MILLRACE_PLUGIN("stopwatch", "1.0",
                millrace::Register<Stopwatch>("stopwatch", "Notes how long its task has waited"))
