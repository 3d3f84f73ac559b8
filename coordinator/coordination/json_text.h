// JSON as text, whatever it holds. What people wrote into nodes, and what servers say of their trouble, is
// quoted in it, and a byte of that which is no UTF-8 must not end the process.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace millrace {

// Such bytes are replaced by U+FFFD. `indent`: -1 is one line.
inline std::string JsonText(const nlohmann::ordered_json& json, int indent = -1) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace millrace
