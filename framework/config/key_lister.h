// The counterpart of Section: called with the same keys it lists them with their values. What a part's keys
// are, and their defaults, thus stands in one place, which reads and lists.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "framework/base/clock.h"
#include "framework/config/section.h"

namespace millrace::engine {

// A value that a document could not hold (a number out of its range, an empty text) stands for its absence:
// the key is listed without a value.
class KeyLister {
 public:
  void Flag(const char* key, bool value) { Add(key, value); }
  void Integer(const char* key, std::uint32_t value, std::uint32_t least, std::uint32_t most);
  void Fraction(const char* key, double value, double least, double most);
  void Duration(const char* key, Micros value, Micros least, Micros most);
  void Durations(const char* key, const std::vector<Micros>& value, Micros least, Micros most);
  void Text(const char* key, const std::string& value, std::size_t longest);
  void Texts(const char* key, const std::vector<std::string>& value, std::size_t longest);
  void Tables(const char* key, const std::vector<TableName>& value);
  template <class Value>
  void Choice(const char* key, Value value, const Choices<std::type_identity_t<Value>>& choices) {
    for (const auto& [word, meaning] : choices) {
      if (meaning == value) Add(key, word);
    }
  }
  void Object(const char* key, const std::string& value);
  template <class List>
  void Part(const char* key, List list) {
    KeyLister part;
    list(part);
    Add(key, part.values());
  }
  template <class Value, class List>
  void OptionalPart(const char* key, const std::optional<Value>& value, List list) {
    if (!value) return Add(key, nullptr);
    Part(key, [&](KeyLister& part) { list(part, *value); });
  }
  template <class Value, class List>
  void Named(const char* key, const std::map<std::string, Value>& values, List list) {
    auto names = nlohmann::ordered_json::object();
    for (const auto& [name, value] : values) {
      KeyLister part;
      list(part, value);
      names[name] = part.values();
    }
    Add(key, std::move(names));
  }

  // A key of a form of its own; null: it has no value.
  void Value(const char* key, nlohmann::ordered_json value) { Add(key, std::move(value)); }

  const std::vector<std::string>& keys() const { return keys_; }
  const nlohmann::ordered_json& values() const { return values_; }

 private:
  void Add(const char* key, nlohmann::ordered_json value);  // null: there is none

  std::vector<std::string> keys_;
  nlohmann::ordered_json values_ = nlohmann::ordered_json::object();
};

}  // namespace millrace::engine
