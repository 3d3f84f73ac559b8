// Handlers that misbehave on purpose, for tests.
#include <millrace/handler.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

namespace {

using millrace::Context;
using millrace::Done;
using millrace::Fail;
using millrace::Handler;
using millrace::Json;
using millrace::Outcome;
using millrace::Retry;
using millrace::Task;

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// Appends one line; lines of several processes don't mix.
void AppendLine(const std::string& path, const std::string& line) {
  std::ofstream(path, std::ios::app) << line + "\n" << std::flush;
}

std::chrono::milliseconds Milliseconds(const Task& task) {
  return std::chrono::milliseconds(task.Params().Integer("ms", 0));
}

// {"ms":50, "log":"FILE", "times":"FILE"}: takes so long, heeding the stop; notes "name attempt" in the one
// file at its start, the time of the wall in microseconds in the other.
class Sleep final : public Handler {
  Outcome Run(const Task& task, Context& context) override {
    if (task.Params().Find("log")) {
      AppendLine(task.Params().Text("log"), std::string(task.Name()) + " " + std::to_string(task.Attempt()));
    }
    if (task.Params().Find("times")) {
      const auto now = std::chrono::system_clock::now().time_since_epoch();
      AppendLine(task.Params().Text("times"),
                 std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
    }
    return context.WaitFor(Milliseconds(task)) ? Done() : Retry("stopped while it slept").Class("stopped");
  }
};

// {"ms":50, "log":"FILE"}: takes so long, heeding the stop; notes when it began and ended, for whoever counts
// how many ran at once: "begin|end name attempt pid microseconds since 1970".
class Timed final : public Handler {
  Outcome Run(const Task& task, Context& context) override {
    Note("begin", task);
    const bool whole = context.WaitFor(Milliseconds(task));
    Note("end", task);
    return whole ? Done() : Retry("stopped while it ran").Class("stopped");
  }
  static void Note(const char* what, const Task& task) {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    AppendLine(task.Params().Text("log"),
               std::string(what) + " " + std::string(task.Name()) + " " + std::to_string(task.Attempt()) +
                   " " + std::to_string(::getpid()) + " " +
                   std::to_string(std::chrono::duration_cast<std::chrono::microseconds>(now).count()));
  }
};

// {"why":"no reason", "while":"FILE", "final":false, "ms":0}: takes so long; fails always, or while the file
// exists.
class Failing final : public Handler {
  Outcome Run(const Task& task, Context& context) override {
    const Json& params = task.Params();
    context.WaitFor(Milliseconds(task));
    if (params.Find("while") && !Exists(params.Text("while"))) return Done();
    const std::string why = params.Text("why", "it fails on purpose");
    return params.Bool("final", false) ? Fail(why).Class("on_purpose") : Retry(why).Class("on_purpose");
  }
};

// {"what":"a message"}: throws it; {"strange":true} throws what is no std::exception.
class Throwing final : public Handler {
  Outcome Run(const Task& task, Context&) override {
    if (task.Params().Bool("strange", false)) throw 42;
    throw std::runtime_error(task.Params().Text("what", "thrown on purpose"));
  }
};

// {"ms":5000}: sleeps on, whatever it is told; {"until":"FILE"}: until the file exists.
class IgnoreLimit final : public Handler {
  Outcome Run(const Task& task, Context&) override {
    const Json& params = task.Params();
    const auto end = std::chrono::steady_clock::now() + Milliseconds(task);
    const std::string until = params.Text("until", "");
    while (std::chrono::steady_clock::now() < end && (until.empty() || !Exists(until))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return Done();
  }
};

// {"signal":9, "once":"FILE"}: kills its process; with `once` only while the file does not exist, which it
// makes.
class Crash final : public Handler {
  Outcome Run(const Task& task, Context&) override {
    const Json& params = task.Params();
    const std::string once = params.Text("once", "");
    if (!once.empty() && Exists(once)) return Done();
    if (!once.empty()) AppendLine(once, "crashed");
    ::kill(::getpid(), static_cast<int>(params.Integer("signal", SIGKILL)));
    std::this_thread::sleep_for(std::chrono::seconds(60));
    return Done();
  }
};

std::vector<std::string> Statements(const Task& task) {
  std::vector<std::string> texts;
  for (const Json& text : task.Params().At("sql").Items()) texts.push_back(text.AsText());
  return texts;
}

// {"sql":["UPDATE …", …], "ms":0, "outcome":"done"|"retry"|"fail"|"throw"}: the statements, a pause, the
// outcome.
class Sql final : public Handler {
  Outcome Run(const Task& task, Context& context) override {
    std::uint64_t affected = 0;
    for (const std::string& statement : Statements(task)) affected += context.Execute(statement);
    context.WaitFor(Milliseconds(task));
    const std::string outcome = task.Params().Text("outcome", "done");
    if (outcome == "retry") return Retry("as asked").Class("on_purpose");
    if (outcome == "fail") return Fail("as asked").Class("on_purpose");
    if (outcome == "throw") throw std::runtime_error("thrown after its SQL");
    return Done(std::to_string(affected) + " rows");
  }
};

// {"sql":[…]}: the same, but swallows every error and says that it is done.
class Swallow final : public Handler {
  Outcome Run(const Task& task, Context& context) override {
    std::string swallowed;
    for (const std::string& statement : Statements(task)) {
      try {
        context.Execute(statement);
      } catch (const millrace::EngineError& error) {
        swallowed += error.what();
      }
    }
    return Done("swallowed: " + swallowed);
  }
};

// {"sql":[…], "procedure":"p"}: the statements, then CALLs a procedure, which commits behind the engine's
// back.
class CommitBehind final : public Handler {
  Outcome Run(const Task& task, Context& context) override {
    if (task.Params().Find("sql")) {
      for (const std::string& statement : Statements(task)) context.Execute(statement);
    }
    context.Execute("CALL " + task.Params().Text("procedure") + "()");
    return Done();
  }
};

// {"log":"FILE", "ms":0}: appends "name attempt idempotency-key" to the file: an effect outside of any
// transaction.
class Effect final : public Handler {
  Outcome Run(const Task& task, Context& context) override {
    AppendLine(task.Params().Text("log"), std::string(task.Name()) + " " + std::to_string(task.Attempt()) +
                                              " " + std::string(task.IdempotencyKey()));
    context.WaitFor(Milliseconds(task));
    return Done();
  }
};

// {"count":3, "handler":"noop", "key":"…"}: adds so many tasks in its own transaction; the key gets a number.
class Submitting final : public Handler {
  Outcome Run(const Task& task, Context& context) override {
    const Json& params = task.Params();
    std::int64_t added = 0;
    for (std::int64_t i = 0; i < params.Integer("count", 1); ++i) {
      millrace::NewTask next{.handler = params.Text("handler", "noop")};
      if (params.Find("key")) next.key = params.Text("key") + std::to_string(i);
      added += context.Submit(next) ? 1 : 0;
    }
    return params.Bool("then_fail", false) ? Fail("as asked") : Done(std::to_string(added) + " added");
  }
};

// {"text":"step 2"}: fails until it finds that text as its progress, which its first attempt saved.
class Resuming final : public Handler {
  Outcome Run(const Task& task, Context& context) override {
    const std::string text = task.Params().Text("text", "half way");
    if (task.Progress() == text) return Done("resumed at " + text);
    context.SaveProgress(text);
    return Retry("saved its progress").After(std::chrono::milliseconds(task.Params().Integer("ms", 0)));
  }
};

// {"kind":"snooze"|"skip", "ms":100}: not yet, or not needed. Snoozes only on the first attempt.
class Declining final : public Handler {
  Outcome Run(const Task& task, Context&) override {
    if (task.Params().Text("kind") == "skip") return millrace::Skip("not needed any more");
    return task.Attempt() == 1 ? millrace::Snooze(Milliseconds(task)) : Done();
  }
};

// Fails, and decides itself when it is run again.
class Deciding final : public Handler {
  Outcome Run(const Task&, Context&) override { return Retry("as asked"); }
  std::optional<millrace::Duration> NextRetry(const millrace::FailedAttempt& failed) override {
    if (failed.failure > 1) return std::nullopt;
    return std::chrono::milliseconds(1);
  }
};

// Rubbish, below the C++ interface: {"what":"none"|"kind"|"null"|"small"|"time"|"binary"|"long"|"index"}.
void RunRubbish(void*, millrace_call* call, const millrace_host* host, const millrace_task* tasks,
                std::size_t) {
  std::string what;
  try {
    what = Task(tasks[0]).Params().Text("what", "none");
  } catch (...) {
    return;
  }
  millrace_outcome outcome{};
  outcome.struct_size = sizeof outcome;
  std::string text = "x";
  if (what == "kind") outcome.kind = 77;
  if (what == "small") outcome.struct_size = 4;
  if (what == "time") {
    outcome.kind = MILLRACE_SNOOZE;
    outcome.at_us = INT64_MAX;
  }
  if (what == "binary") text = std::string("a\0b\xff\xed\xa0\x80\x1b[31m", 12);
  if (what == "long") text = std::string(1'000'000, 'x') + "\xc3";
  outcome.text = {text.data(), text.size()};
  if (what == "none") return;
  host->settle(call, what == "index" ? 999'999 : 0, what == "null" ? nullptr : &outcome);
}

int g_rubbish;
void* OpenRubbish(const millrace_open*) { return &g_rubbish; }
void CloseRubbish(void*) {}

constexpr millrace_handler kRubbish = {sizeof(millrace_handler),
                                       1,
                                       "rubbish",
                                       "Returns outcomes that do not exist",
                                       &OpenRubbish,
                                       &RunRubbish,
                                       &CloseRubbish};

}  // namespace

MILLRACE_PLUGIN("chaos_handlers", "1.0", millrace::Register<Sleep>("sleep", "Takes its time"),
                millrace::Register<Timed>("timed", "Notes when it began and ended"),
                millrace::Register<Failing>("fail", "Fails, always or while a file exists"),
                millrace::Register<Throwing>("throw", "Throws"),
                millrace::Register<IgnoreLimit>("ignore_limit", "Ignores its time limit"),
                millrace::Register<Crash>("crash", "Kills its process"),
                millrace::Register<Sql>("sql", "Runs SQL in its task's transaction"),
                millrace::Register<Swallow>("swallow", "Swallows SQL errors"),
                millrace::Register<CommitBehind>("commit_behind", "Commits behind the engine's back"),
                millrace::Register<Effect>("effect", "Has an effect outside of the transaction"),
                millrace::Register<Submitting>("submit", "Adds tasks"),
                millrace::Register<Resuming>("resume", "Goes on where it stopped"),
                millrace::Register<Declining>("decline", "Snoozes or skips"),
                millrace::Register<Deciding>("decide", "Decides when it is run again", 1,
                                             {.timeout = std::chrono::seconds(5),
                                              .delays = {std::chrono::seconds(1), std::chrono::minutes(2)},
                                              .max_failures = 9,
                                              .concurrency = 2}),
                kRubbish)
