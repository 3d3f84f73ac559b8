#include "scripted_handlers.h"

#include <millrace/handler.h>

namespace {

using millrace::Context;
using millrace::Outcome;
using millrace::Task;

void SendSql(const Task& task, Context& context) {
  const millrace::Json& params = task.Params();
  const std::int64_t count = params.Integer("sql");
  const bool swallow = params.Bool("swallow", false);
  for (std::int64_t i = 0; i < count; ++i) {
    try {
      context.Execute("UPDATE effects SET n = n + 1 WHERE name = ? AND fault = ?",
                      {std::string(task.Name()), i + 1 == count ? params.Text("fault") : ""});
    } catch (const millrace::EngineError&) {
      if (!swallow) throw;
    }
  }
}

Outcome Said(const Task& task) {
  const std::string outcome = task.Params().Text("outcome");
  if (outcome == "throw") throw std::runtime_error("as asked");
  if (outcome == "bad") throw millrace::BadInput("as asked");
  if (outcome == "retry") return millrace::Retry("as asked");
  if (outcome == "fail") return millrace::Fail("as asked");
  if (outcome == "snooze") return millrace::Snooze(std::chrono::seconds(1));
  if (outcome == "skip") return millrace::Skip("as asked");
  return millrace::Done();
}

class Plain final : public millrace::Handler {
  Outcome Run(const Task& task, Context& context) override {
    SendSql(task, context);
    return Said(task);
  }
};

class Batch final : public millrace::BatchHandler {
  std::vector<Outcome> Run(std::span<const Task> tasks, Context& context) override {
    std::vector<Outcome> outcomes;
    for (const Task& task : tasks) {
      if (task.Params().Text("outcome") == "done") SendSql(task, context);
      outcomes.push_back(Said(task));
    }
    return outcomes;
  }
};

class Any final : public millrace::BatchHandler {
  std::vector<Outcome> Run(std::span<const Task> tasks, Context& context) override {
    std::vector<Outcome> outcomes;
    for (const Task& task : tasks) {
      SendSql(task, context);
      outcomes.push_back(Said(task));
    }
    return outcomes;
  }
};

// As a host of before looks to a plugin: it has no begin_task.
void RunSilently(void* instance, millrace_call* call, const millrace_host* host, const millrace_task* tasks,
                 std::size_t count) {
  millrace_host older = *host;
  older.struct_size = offsetof(millrace_host, begin_task);
  older.begin_task = nullptr;
  millrace::detail::RunHandler<Any>(instance, call, &older, tasks, count);
}

millrace_handler Silent() {
  millrace_handler handler = millrace::Register<Any>("silent", "Tells nothing apart", 999);
  handler.run = &RunSilently;
  return handler;
}

}  // namespace

namespace millrace::engine {

const millrace_handler& ScriptedPlain() {
  static const millrace_handler handler = Register<Plain>("plain", "One task after another", 999);
  return handler;
}
const millrace_handler& ScriptedBatch() {
  static const millrace_handler handler = Register<Batch>("batch", "All tasks together", 999);
  return handler;
}
const millrace_handler& ScriptedSilent() {
  static const millrace_handler handler = Silent();
  return handler;
}

}  // namespace millrace::engine
