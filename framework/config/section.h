// Reads one JSON object strictly: each key once by the type it must have, then what is left is unknown.
// Problems are collected, not thrown: a person sees all of them at once.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/config/position_map.h"

namespace millrace {

// What is wrong with one document, in the order of its lines.
class Problems {
 public:
  Problems(const PositionMap& positions, std::string source)
      : positions_(positions), source_(std::move(source)) {}
  // `what` says what is wrong and what to do.
  void Add(const KeyPath& path, const std::string& what);
  void AddAt(int line, const KeyPath& path, const std::string& what);
  bool empty() const { return lines_.empty(); }
  std::string Text() const;

 private:
  const PositionMap& positions_;
  std::string source_;
  std::vector<std::pair<int, std::string>> lines_;
};

// Each reader leaves `value` as it is where the key is absent or wrong.
class Section {
 public:
  // `value` outlives the section. A value that is no object is a problem, and reads like an empty object.
  Section(const nlohmann::json& value, KeyPath path, Problems& problems);

  void Integer(const char* key, std::uint32_t& value, std::uint32_t least, std::uint32_t most);
  void Fraction(const char* key, double& value, double least, double most);
  void Duration(const char* key, Micros& value, Micros least, Micros most);
  void Durations(const char* key, std::vector<Micros>& value, Micros least, Micros most);
  void Text(const char* key, std::string& value, std::size_t longest);
  void Texts(const char* key, std::vector<std::string>& value);
  // The index of the text in `choices`; nullopt where the key is absent or wrong.
  std::optional<std::size_t> Choice(const char* key, const std::vector<std::string>& choices);
  // An object as its JSON text.
  void Object(const char* key, std::string& value);
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

}  // namespace millrace
