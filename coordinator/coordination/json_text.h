// JSON as text, whatever it holds. What people wrote into nodes, and what handlers and servers say, is quoted
// in it: a byte of that which is no UTF-8 must not end the process, and nothing of it may steer a terminal.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace millrace::engine {

// Characters that are not to be shown become `\u009b` (see EscapeJson); a text that is no UTF-8 is escaped
// first. `indent`: -1 is one line.
std::string JsonText(const nlohmann::ordered_json& json, int indent = -1);

bool IsDeeperThan(std::size_t levels, std::string_view text);
// Nested deeper than a configuration may be. Copies, comparisons and texts of JSON are made by functions that
// call themselves at each level: of a hundred thousand levels, which fit into a node, they have no stack
// left.
bool IsTooDeep(std::string_view text);

// What a node holds, whoever wrote it; discarded (is_discarded) where it is no JSON or too deep.
template <class Json>
Json ParseNode(std::string_view text) {
  if (IsTooDeep(text)) return Json(Json::value_t::discarded);
  return Json::parse(text.begin(), text.end(), nullptr, false);
}

}  // namespace millrace::engine
