// The handlers that the program has by itself: they carry its alerts. A plugin like others, but that it is
// linked in, so that a worker has them without any folder of plugins.
#pragma once

#include <millrace/plugin.h>

namespace built_in {

// `millrace.mail` and `millrace.webhook`.
const millrace_plugin* Plugin();

}  // namespace built_in
