// The values of the secrets that a handler's configuration names.
#pragma once

#include <string>

#include "framework/config/config.h"
#include "framework/plugin/handler_instance.h"

namespace millrace::engine {

// Invalid with the key of the one that can't be had: a file that is missing or that others can read, a
// variable that is not set. No message holds a value.
Result<Secrets> ReadSecrets(const std::string& type, const HandlerConfig& config);

}  // namespace millrace::engine
