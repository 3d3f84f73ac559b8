#include "framework/config/key_lister.h"

#include "framework/base/time_text.h"

namespace millrace::engine {

using nlohmann::ordered_json;

void KeyLister::Add(const char* key, ordered_json value) {
  keys_.emplace_back(key);
  if (!value.is_null()) values_[key] = std::move(value);
}

void KeyLister::Integer(const char* key, std::uint32_t value, std::uint32_t least, std::uint32_t most) {
  Add(key, value < least || value > most ? ordered_json() : ordered_json(value));
}

void KeyLister::Fraction(const char* key, double value, double, double) { Add(key, value); }

void KeyLister::Duration(const char* key, Micros value, Micros least, Micros most) {
  Add(key, value < least || value > most ? ordered_json() : ordered_json(FormatDuration(value)));
}

void KeyLister::Durations(const char* key, const std::vector<Micros>& value, Micros, Micros) {
  ordered_json texts = ordered_json::array();
  for (const Micros one : value) texts.push_back(FormatDuration(one));
  Add(key, std::move(texts));
}

void KeyLister::Text(const char* key, const std::string& value, std::size_t) {
  Add(key, value.empty() ? ordered_json() : ordered_json(value));
}

void KeyLister::Texts(const char* key, const std::vector<std::string>& value, std::size_t) {
  Add(key, value.empty() ? ordered_json() : ordered_json(value));
}

void KeyLister::Tables(const char* key, const std::vector<TableName>& value) {
  Add(key, value.empty() ? ordered_json() : ordered_json(value));
}

void KeyLister::Object(const char* key, const std::string& value) {
  Add(key, ordered_json::parse(value, nullptr, false));
}

}  // namespace millrace::engine
