#include "coordinator/coordination/json_text.h"

#include "framework/base/escape.h"
#include "framework/base/utf8.h"
#include "framework/config/position_map.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

std::string AsUtf8(const std::string& text) { return IsUtf8(text) ? text : Escape(text); }

ordered_json AsUtf8(const ordered_json& json) {
  if (json.is_string()) return AsUtf8(json.get_ref<const std::string&>());
  if (!json.is_structured()) return json;
  ordered_json copy = json.is_array() ? ordered_json::array() : ordered_json::object();
  for (const auto& [key, value] : json.items()) {
    if (json.is_array()) {
      copy.push_back(AsUtf8(value));
    } else {
      copy[AsUtf8(key)] = AsUtf8(value);
    }
  }
  return copy;
}

}  // namespace

bool IsTooDeep(std::string_view text) { return IsDeeperThan(PositionMap::kDeepest, text); }

bool IsDeeperThan(std::size_t levels, std::string_view text) {
  std::size_t depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quoted) {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '{' || c == '[')) {
      if (++depth > levels) return true;
    } else if (!quoted && (c == '}' || c == ']') && depth > 0) {
      --depth;
    }
  }
  return false;
}

std::string JsonText(const ordered_json& json, int indent) {
  try {
    return EscapeJson(json.dump(indent));
  } catch (const ordered_json::type_error&) {  // some of it is no UTF-8, which is seldom
    return EscapeJson(AsUtf8(json).dump(indent));
  }
}

}  // namespace millrace::engine
