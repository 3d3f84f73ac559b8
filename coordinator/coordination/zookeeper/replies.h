// The client library's return codes in our words. Pure.
#pragma once

#include <string>

#include "coordinator/coordination/tree.h"

namespace millrace::engine {

TreeStatus StatusOf(int code);

// Whether a code is a server's own answer: proof that it took the request while the session lived.
bool IsAnswer(int code);

// `create /workers/w1`, for messages.
std::string Describe(const TreeWrite& write);
std::string Describe(const TreeRequest& request);

}  // namespace millrace::engine
