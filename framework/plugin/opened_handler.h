// A plugin's handler, opened for one task type.
#pragma once

#include <millrace/plugin.h>

#include <memory>
#include <string>

#include "framework/plugin/handler_instance.h"

namespace millrace::engine {

// Invalid with what the handler said when it refused its options. `descriptor` must outlive the instance.
Result<std::unique_ptr<HandlerInstance>> OpenHandler(const millrace_handler& descriptor,
                                                     const std::string& type, const std::string& options,
                                                     const Secrets& secrets);

}  // namespace millrace::engine
