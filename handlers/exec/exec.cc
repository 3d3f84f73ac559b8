// Runs a program that the configuration names, with the task as JSON on its standard input. Nothing of the
// command line ever comes from a task.
#include <millrace/handler.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "process.h"
#include "verdict.h"

namespace exec_handler {
namespace {

std::string InputOf(const millrace::Task& task) {
  std::string json = "{\"name\":" + millrace::JsonQuote(task.Name());
  const auto add = [&json](const char* name, std::string value) {
    json += std::string(",\"") + name + "\":" + value;
  };
  add("handler", millrace::JsonQuote(task.Handler()));
  add("params", std::string(task.ParamsText()));
  add("attempt", std::to_string(task.Attempt()));
  add("failures", std::to_string(task.Failures()));
  add("idempotency_key", millrace::JsonQuote(task.IdempotencyKey()));
  add("key", millrace::JsonQuote(task.Key()));
  add("batch", millrace::JsonQuote(task.Batch()));
  add("progress", millrace::JsonQuote(task.Progress()));
  return json + "}\n";
}

// A call that is not over a tenth of its time limit after it (1 to 10 s) loses its thread: by then the
// program has to be gone.
std::chrono::steady_clock::time_point KillBy(const millrace::Context& context) {
  using namespace std::chrono_literals;
  constexpr auto kToBeGone = 300ms;
  return context.Deadline() + std::clamp<millrace::Duration>(context.TimeLeft() / 10, 1s, 10s) - kToBeGone;
}

// Refused when the handler is opened, and not by each task.
void CheckPath(const std::string& option, const std::string& path, bool directory) {
  // With a '/' at its end it names a directory or nothing.
  if (::access((directory ? path + "/" : path).c_str(), X_OK) == 0) return;
  throw millrace::BadInput("'" + option + "' names '" + path + "', which is missing or can't be " +
                           (directory ? "entered" : "executed"));
}

class Exec final : public millrace::Handler {
 public:
  void Open(const millrace::Json& options, const millrace::Secrets& secrets) override {
    options.AllowOnly(
        {"program", "args", "directory", "environment", "secret_environment", "fail_on", "grace_ms"});
    program_.path = options.Text("program");
    if (!program_.path.starts_with('/')) throw millrace::BadInput("'program' must be an absolute path");
    CheckPath("program", program_.path, false);
    program_.directory = options.Text("directory", "");
    if (!program_.directory.empty()) CheckPath("directory", program_.directory, true);
    grace_ = std::chrono::milliseconds(options.Integer("grace_ms", 2000, 0, 60 * 60 * 1000));
    if (options.Find("args")) {
      for (const auto& argument : options.At("args").Items()) program_.arguments.push_back(argument.AsText());
    }
    if (options.Find("fail_on")) {
      for (const auto& code : options.At("fail_on").Items()) {
        const std::int64_t number = code.AsInteger();
        if (number < 1 || number > 255)
          throw millrace::BadInput("'fail_on' is of exit codes, 1 to 255, and has " + std::to_string(number));
        fail_on_.insert(static_cast<int>(number));
      }
    }
    FillEnvironment(options, secrets);
  }

  millrace::Outcome Run(const millrace::Task& task, millrace::Context& context) override {
    task.Params();  // so that what is pasted into the input is JSON
    const auto should_stop = [&context] { return context.ShouldStop(); };
    return Judge(RunProgram(program_, InputOf(task), should_stop, grace_, KillBy(context)), fail_on_);
  }

 private:
  // The worker's environment is not handed on; PATH and the locale are, and what the options name goes over
  // them.
  void FillEnvironment(const millrace::Json& options, const millrace::Secrets& secrets) {
    std::map<std::string, std::string> variables;
    for (const char* name : {"PATH", "HOME", "LANG", "LC_ALL", "TZ"}) {
      if (const char* value = ::getenv(name)) variables[name] = value;
    }
    if (options.Find("environment")) {
      for (const auto& [name, value] : options.At("environment").Members()) {
        variables[name] = value.AsText();
      }
    }
    if (options.Find("secret_environment")) {
      for (const auto& [name, secret] : options.At("secret_environment").Members()) {
        variables[name] = secrets.Get(secret.AsText());
      }
    }
    for (const auto& [name, value] : variables) program_.environment.push_back(name + "=" + value);
  }

  Program program_;
  std::set<int> fail_on_;
  std::chrono::milliseconds grace_{};
};

}  // namespace
}  // namespace exec_handler

MILLRACE_PLUGIN("exec", "1.0",
                millrace::Register<exec_handler::Exec>("exec",
                                                       "Runs a program with the task on its standard input"))
