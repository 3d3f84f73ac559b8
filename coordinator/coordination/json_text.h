// JSON as text, whatever it holds. What people wrote into nodes, and what handlers and servers say, is quoted
// in it: a byte of that which is no UTF-8 must not end the process, and nothing of it may steer a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace millrace::engine {

// Characters that are not to be shown become `\u009b` (see EscapeJson); a text that is no UTF-8 is escaped
// first. `indent`: -1 is one line.
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);

}  // namespace millrace::engine
