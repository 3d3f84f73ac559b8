#include "coordinator/app/config/config_document.h"

#include <iostream>
#include <iterator>
#include <map>

#include "coordinator/coordination/json_text.h"
#include "framework/base/escape.h"
#include "framework/config/position_map.h"
#include "framework/files/paths.h"

namespace millrace::engine {

using nlohmann::ordered_json;

namespace {

// JSON that a configuration file would be refused for, such as a key that stands there twice. What is no JSON
// is a text.
Status CheckValue(const ConfigKey& key, const std::string& value) {
  if (!ordered_json::accept(value, true)) return {};
  const PositionMap positions = PositionMap::Read(value);
  if (positions.problems().empty()) return {};
  const TextProblem& problem = positions.problems().front();
  std::string place = key.text();
  for (const std::string& name : problem.path) place += "." + name;
  return Fail(ErrorCode::Invalid, place + ": " + problem.what);
}

// The values of an object by their paths.
void AddLeaves(const ordered_json& value, const std::string& path,
               std::map<std::string, std::string>& leaves) {
  if (!value.is_object() || value.empty()) {
    leaves[path] = JsonText(value);
    return;
  }
  for (const auto& [key, child] : value.items()) {
    const bool dotted = key.find_first_of(".[") != std::string::npos;
    AddLeaves(child, path + (dotted ? "[\"" + key + "\"]" : "." + key), leaves);
  }
}

std::map<std::string, std::string> LeavesOf(const std::string& part, const std::string& text) {
  std::map<std::string, std::string> leaves;
  const ordered_json document = AsJson(text);
  if (document != ordered_json::object()) AddLeaves(document, part, leaves);
  return leaves;
}

// The value at the keys, made where it is not there; nullptr where it would lie under what is no object. A
// key that is a number is a key all the same: a JSON pointer would take it for the place in a list, and make
// one of that length.
ordered_json* PlaceFor(ordered_json& document, const std::vector<std::string>& keys) {
  ordered_json* place = &document;
  for (const std::string& key : keys) {
    if (place->is_null()) *place = ordered_json::object();
    if (!place->is_object()) return nullptr;
    place = &(*place)[key];
  }
  return place;
}

}  // namespace

ordered_json AsJson(const std::string& text) {
  ordered_json value = ordered_json::parse(text, nullptr, false, true);
  return value.is_discarded() ? ordered_json(text) : value;
}

bool HasComments(const std::string& text) {
  return ordered_json::accept(text, true) && !ordered_json::accept(text, false);
}

std::string TextToEdit(const std::string& text) {
  if (text.find('\n') != std::string::npos || HasComments(text))
    return text.ends_with('\n') ? text : text + "\n";
  return JsonText(AsJson(text), 2) + "\n";
}

Result<ordered_json> DocumentOf(const std::string& part, const std::string& text) {
  ordered_json document = AsJson(text);
  if (document.is_object()) return document;
  return Fail(ErrorCode::Invalid, "config/" + part + " holds no JSON object now: set it whole, or " +
                                      "millrace config rollback " + part);
}

ordered_json::json_pointer PointerTo(const std::vector<std::string>& keys) {
  ordered_json::json_pointer pointer;
  for (const std::string& key : keys) pointer /= key;
  return pointer;
}

Result<std::string> ReadValue(const std::string& value) {
  if (value == "-") return std::string(std::istreambuf_iterator<char>(std::cin), {});
  if (IsPlainFile(value).value_or(false)) {
    return Fail(ErrorCode::Invalid, "'" + value + "' is a file: write @" + value + " for what it holds");
  }
  if (!value.starts_with('@')) return value;
  auto text = ReadFileText(value.substr(1));
  if (!text) return Fail(ErrorCode::Invalid, text.error().message + "; give JSON, @FILE or -");
  return text;
}

Result<std::string> WithValue(const std::string& text, const ConfigKey& key, const std::string& value) {
  if (key.whole()) return value;
  BOOST_OUTCOME_TRY(document, DocumentOf(key.part(), text));
  BOOST_OUTCOME_TRYV(CheckValue(key, value));
  ordered_json* place = PlaceFor(document, key.Keys(document));
  if (place == nullptr) return Fail(ErrorCode::Invalid, key.text() + " lies under a value that is no object");
  *place = AsJson(value);
  return JsonText(document, 2);
}

Result<std::string> WithoutValue(const std::string& text, const ConfigKey& key) {
  if (key.whole()) return std::string("{}");
  BOOST_OUTCOME_TRY(document, DocumentOf(key.part(), text));
  std::vector<std::string> keys = key.Keys(document);
  const auto pointer = PointerTo(keys);
  if (!document.contains(pointer)) {
    return Fail(ErrorCode::NotFound,
                key.text() + " is not set; millrace config get " + key.part() + " shows what is");
  }
  const std::string last = keys.back();
  keys.pop_back();
  ordered_json& parent = document[PointerTo(keys)];
  if (!parent.is_object()) return Fail(ErrorCode::Invalid, key.text() + " is no key of an object");
  parent.erase(last);
  return JsonText(document, 2);
}

std::vector<KeyChange> Changes(const std::string& part, const std::string& before, const std::string& after) {
  const auto old_values = LeavesOf(part, before);
  const auto new_values = LeavesOf(part, after);
  std::map<std::string, KeyChange> changes;
  for (const auto& [key, value] : old_values) changes[key] = {key, value, ""};
  for (const auto& [key, value] : new_values) {
    KeyChange& change = changes[key];
    change.key = key;
    change.after = value;
  }
  std::vector<KeyChange> different;
  for (auto& [key, change] : changes) {
    if (change.before != change.after) different.push_back(std::move(change));
  }
  return different;
}

std::string ToText(const std::vector<KeyChange>& changes) {
  std::string text;
  for (const KeyChange& change : changes) {
    const char* sign = change.before.empty() ? "+ " : change.after.empty() ? "- " : "~ ";
    const char* between = change.before.empty() || change.after.empty() ? "" : " → ";
    text += (text.empty() ? "" : "\n") + std::string(sign) + Escape(change.key) + "  " +
            Escape(change.before, Backslash::Kept) + between + Escape(change.after, Backslash::Kept);
  }
  return text;
}

ordered_json ToJson(const std::vector<KeyChange>& changes) {
  ordered_json all = ordered_json::array();
  for (const KeyChange& change : changes) {
    ordered_json one{{"key", change.key}};
    if (!change.before.empty()) one["before"] = ordered_json::parse(change.before);
    if (!change.after.empty()) one["after"] = ordered_json::parse(change.after);
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace millrace::engine
