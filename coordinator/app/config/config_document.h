// A part of the configuration as a document: what stands for it on a command line, a key in it, and what one
// version changes of another. Pure but for reading files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "coordinator/app/config/config_key.h"
#include "framework/base/result.h"

namespace millrace::engine {

// A text that is no JSON by itself is meant as a string: `config set engine.poll 100ms`.
nlohmann::ordered_json AsJson(const std::string& text);

// JSON with comments, which a document does not keep.
bool HasComments(const std::string& text);
// As a person is to change it: with its own layout and comments; laid out where it has neither, on one line.
std::string TextToEdit(const std::string& text);

// The text of config/PART. Invalid, with what to do, where it is no object.
Result<nlohmann::ordered_json> DocumentOf(const std::string& part, const std::string& text);

nlohmann::ordered_json::json_pointer PointerTo(const std::vector<std::string>& keys);

// What stands for a value on a command line: JSON itself, @FILE, or - for standard input. Invalid for a file
// that can't be read, and for one that is named without @.
Result<std::string> ReadValue(const std::string& value);

// The text of config/PART with this value at the key. Invalid where that lies under what is no
// object, and for a value with two members of one name in an object.
Result<std::string> WithValue(const std::string& text, const ConfigKey& key, const std::string& value);
// The text without the key; without all of them for a whole part. NotFound where it is not set.
Result<std::string> WithoutValue(const std::string& text, const ConfigKey& key);

// A value that another version has not, or has otherwise. As JSON; empty: there is none.
struct KeyChange {
  std::string key;  // handlers.noop.timeout
  std::string before;
  std::string after;
  bool operator==(const KeyChange&) const = default;
};

// By their keys. Lists are values; an empty object is one, too.
std::vector<KeyChange> Changes(const std::string& part, const std::string& before, const std::string& after);
// `+ key value`, `- key value`, `~ key value → value`, a line each.
std::string ToText(const std::vector<KeyChange>& changes);
// [{"key","before","after"}]; what is not there is left out.
nlohmann::ordered_json ToJson(const std::vector<KeyChange>& changes);

}  // namespace millrace::engine
