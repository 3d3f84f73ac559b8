// What an operator's command leaves in a node, for whoever looks at it.
#pragma once

#include <string>

namespace millrace::engine {

// {"by":"user@host","at":"2026-11-20T18:00:00Z"}
std::string OperatorMark();

}  // namespace millrace::engine
