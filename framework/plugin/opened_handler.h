// A plugin's handler, opened for one task type, and its word on its failed attempts.
#pragma once

#include <millrace/plugin.h>

#include <memory>
#include <string>

#include "framework/plugin/handler_instance.h"

namespace millrace::engine {

// What the descriptor brings, as it stands there: Validate says whether it is possible.
CodeDefaults ReadDefaults(const millrace_handler& descriptor);

// Invalid with what the handler said when it refused its options. `descriptor` must outlive the instance.
Result<std::unique_ptr<HandlerInstance>> OpenHandler(const millrace_handler& descriptor,
                                                     const std::string& type, const std::string& options,
                                                     const Secrets& secrets);

// The outcome with its handler's word on when the task is due again, where it has a say: an outcome's own
// time goes before, then the configuration's ladder, then the handler, then the ladder of its defaults or the
// built-in one. Calls foreign code. `unit` is random in [0, 1).
Outcome AskNextRetry(HandlerInstance& handler, const HandlerConfig& config, const std::string& shard,
                     const Task& task, Outcome outcome, double unit);

}  // namespace millrace::engine
