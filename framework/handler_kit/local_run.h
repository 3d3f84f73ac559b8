// Runs one handler on given parameters, here and now: no worker, no task row. For authors' tests and for
// `millrace handler run`.
#pragma once

#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/handler_kit/local_context.h"
#include "framework/plugin/plugin_set.h"
#include "framework/store/store.h"

namespace millrace::engine {

struct LocalRunOptions {
  std::string type;  // the task type
  HandlerConfig config;
  Secrets secrets;
  std::vector<std::string> params = {"{}"};  // JSON, one task each; at most the handler's batch
  std::string progress;                      // what an earlier attempt saved
  std::uint32_t attempt = 1;
  Store* store = nullptr;           // where its SQL goes; null: SQL is refused
  TableName table = kDefaultTable;  // where it submits tasks
  bool commit = false;              // otherwise what it wrote is rolled back
};

enum class LocalEffect {
  None,  // it wrote nothing
  Committed,
  RolledBack,
  InDoubt,  // parts of it may have taken effect: its transaction was ended behind the context's back
};

struct LocalReport {
  std::vector<Outcome> outcomes;  // parallel to the params
  std::vector<LocalLogLine> log;
  std::vector<LocalStatement> statements;
  std::vector<NewTask> submitted;
  std::vector<std::pair<std::size_t, std::string>> progress;  // by task
  Micros took{};
  LocalEffect effect = LocalEffect::None;
  std::string effect_note;  // why it was not committed although that was asked for, or is in doubt
};

// NotFound, Invalid: the handler can't be opened, or the parameters are no JSON or too many. A handler that
// fails is no error: see the outcomes. It commits only where asked, and where a worker would.
Result<LocalReport> RunLocally(const PluginSet& plugins, const LocalRunOptions& options, const Clock& clock);

}  // namespace millrace::engine
