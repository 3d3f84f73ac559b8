#include "coordinator/app/config_document.h"

#include <fstream>
#include <iostream>
#include <iterator>

#include "framework/files/paths.h"

namespace millrace::engine {

using nlohmann::ordered_json;

Result<ConfigNode> CurrentNode(ClusterClient& client, const std::string& part) {
  BOOST_OUTCOME_TRY(node, client.Get("/config/" + part));
  if (!node) return ConfigNode{part, "{}", std::nullopt};
  return ConfigNode{part, node->data.empty() ? "{}" : node->data, node->version, SetAt(*node)};
}

Result<std::string> ReadValue(const std::string& value) {
  if (value == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  if (IsPlainFile(value).value_or(false)) {
    return Fail(ErrorCode::Invalid, "'" + value + "' is a file: write @" + value + " for what it holds");
  }
  if (!value.starts_with('@')) return value;
  std::ifstream file(value.substr(1), std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file) return text;
  return Fail(ErrorCode::Invalid, value.substr(1) + " can't be read; give JSON, @FILE or -");
}

ordered_json AsJson(const std::string& text) {
  ordered_json value = ordered_json::parse(text, nullptr, false, true);
  return value.is_discarded() ? ordered_json(text) : value;
}

ordered_json::json_pointer PointerTo(const std::vector<std::string>& keys) {
  ordered_json::json_pointer pointer;
  for (const std::string& key : keys) pointer /= key;
  return pointer;
}

}  // namespace millrace::engine
