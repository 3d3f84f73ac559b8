// Reads one JSON object strictly: each key once by the type it must have, then what is left is unknown.
// Problems are collected, not thrown: a person sees all of them at once.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "framework/base/clock.h"
#include "framework/config/config.h"
#include "framework/config/position_map.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// What is wrong with one document, in the order of its lines.
class Problems {
 public:
  Problems(const PositionMap& positions, std::string source, LineNumbers told = LineNumbers::Told)
      : positions_(positions), source_(std::move(source)), told_(told) {}
  // `what` says what is wrong and what to do.
  void Add(const KeyPath& path, const std::string& what);
  void AddAt(int line, const KeyPath& path, const std::string& what);
  bool empty() const { return lines_.empty(); }
  std::size_t size() const { return lines_.size(); }
  std::string Text() const;

 private:
  const PositionMap& positions_;
  std::string source_;
  LineNumbers told_;
  std::vector<std::pair<int, std::string>> lines_;
};

// The words of a key that has few values, and what each means.
template <class Value>
using Choices = std::vector<std::pair<const char*, Value>>;

// Each reader leaves `value` as it is where the key is absent or wrong.
class Section {
 public:
  // `value` outlives the section. A value that is no object is a problem, and reads like an empty object.
  Section(const nlohmann::json& value, KeyPath path, Problems& problems);

  void Flag(const char* key, bool& value);
  void Integer(const char* key, std::uint32_t& value, std::uint32_t least, std::uint32_t most);
  void Fraction(const char* key, double& value, double least, double most);
  void Duration(const char* key, Micros& value, Micros least, Micros most);
  void Durations(const char* key, std::vector<Micros>& value, Micros least, Micros most);
  void Text(const char* key, std::string& value, std::size_t longest);
  // A list of texts, none of them empty or longer than so many bytes.
  void Texts(const char* key, std::vector<std::string>& value, std::size_t longest);
  void Tables(const char* key, std::vector<TableName>& value);
  template <class Value>
  void Choice(const char* key, Value& value, const Choices<std::type_identity_t<Value>>& choices) {
    std::vector<std::string> words;
    for (const auto& [word, meaning] : choices) words.emplace_back(word);
    if (const auto index = ChoiceOf(key, words)) value = choices[*index].second;
  }
  // An object as its JSON text.
  void Object(const char* key, std::string& value);
  // The object under the key, read as a section of its own.
  template <class Read>
  void Part(const char* key, Read read) {
    if (const nlohmann::json* child = Child(key)) ReadPart(*child, Path(key), read);
  }
  // The same where its presence says something by itself.
  template <class Value, class Read>
  void OptionalPart(const char* key, std::optional<Value>& value, Read read) {
    const nlohmann::json* child = Child(key);
    if (child == nullptr) return;
    value.emplace();
    ReadPart(*child, Path(key), [&](Section& part) { read(part, *value); });
  }
  // An object whose keys are free names, each with an object of its own.
  template <class Value, class Read>
  void Named(const char* key, std::map<std::string, Value>& values, Read read) {
    const nlohmann::json* child = Child(key);
    if (child == nullptr) return;
    Section names(*child, Path(key), problems_);
    for (const auto& [name, part] : names.Every().items()) {
      Value value;
      ReadPart(part, names.Path(name), [&](Section& section) { read(section, value); });
      if (part.is_object()) values[name] = std::move(value);
    }
  }
  // The value of the key, or nullptr.
  const nlohmann::json* Child(const char* key);
  // Every key with its value, where names are free; makes all of them known.
  const nlohmann::json& Every();

  KeyPath Path(const std::string& key) const;
  void Add(const std::string& key, const std::string& what) { problems_.Add(Path(key), what); }
  Problems& problems() { return problems_; }
  // Reports the keys that no reader asked for, with the nearest known one. Call it last.
  void Done();

 private:
  template <class Read>
  void ReadPart(const nlohmann::json& value, KeyPath path, Read read) {
    Section part(value, std::move(path), problems_);
    read(part);
    part.Done();
  }
  std::optional<std::size_t> ChoiceOf(const char* key, const std::vector<std::string>& words);
  void WrongType(const KeyPath& path, const nlohmann::json& value, const std::string& wanted);
  std::optional<Micros> ReadDuration(const KeyPath& path, const nlohmann::json& value, Micros least,
                                     Micros most);

  nlohmann::json empty_ = nlohmann::json::object();
  const nlohmann::json& value_;
  KeyPath path_;
  Problems& problems_;
  std::vector<std::string> known_;
  bool every_ = false;
};

}  // namespace millrace::engine
