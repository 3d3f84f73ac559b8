// Handlers that do what their tasks' parameters say, one of each style, as plugins register them:
// {"sql": statements, "fault": "", "swallow": false, "outcome": "done"}. The last statement of a task carries
// its fault.
#pragma once

#include <millrace/plugin.h>

namespace millrace::engine {

const millrace_handler& ScriptedPlain();   // a Handler that is handed several tasks
const millrace_handler& ScriptedBatch();   // a BatchHandler: sends SQL for the tasks alone that are done
const millrace_handler& ScriptedSilent();  // a plugin that is older than begin_task; sends SQL for any task

}  // namespace millrace::engine
