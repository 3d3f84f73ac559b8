// The question before something is done to many.
#pragma once

#include <string>

#include "framework/base/result.h"

namespace millrace::engine {

// Done where `yes` is set or a person at the terminal answers y. Conflict where there is no terminal to ask,
// and where the answer is anything else.
Status Confirm(const std::string& question, bool yes);

}  // namespace millrace::engine
