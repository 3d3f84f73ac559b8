#include "framework/config/section.h"

#include <algorithm>

#include "framework/base/escape.h"
#include "framework/base/suggest.h"
#include "framework/base/time_text.h"
#include "framework/task/task.h"

namespace millrace::engine {

using nlohmann::json;

namespace {

constexpr std::size_t kMostDurations = 100;  // in a list

std::string Shown(const KeyPath& path) {
  std::string text;
  for (const std::string& key : path) {
    if (!text.empty()) text += '.';
    text += Escape(Shorten(key, 80));
  }
  return text;
}

std::string Shown(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  return Shorten(EscapeJson(value.dump(-1, ' ', false, json::error_handler_t::replace)), 60);
}

std::string Number(double value) { return json(value).dump(); }

}  // namespace

void Problems::AddAt(int line, const KeyPath& path, const std::string& what) {
  std::string text = source_ + (told_ == LineNumbers::Told ? ":" + std::to_string(line) : "") + ": ";
  if (!path.empty()) text += Shown(path) + ": ";
  lines_.emplace_back(line, text + what);
}

void Problems::Add(const KeyPath& path, const std::string& what) { AddAt(positions_.Line(path), path, what); }

std::string Problems::Text() const {
  std::vector<std::pair<int, std::string>> sorted = lines_;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (const auto& [line, problem] : sorted) {
    if (!text.empty()) text += '\n';
    text += problem;
  }
  return text;
}

Section::Section(const json& value, KeyPath path, Problems& problems)
    : value_(value.is_object() ? value : empty_), path_(std::move(path)), problems_(problems) {
  if (!value.is_object()) WrongType(path_, value, "an object, {…}");
}

KeyPath Section::Path(const std::string& key) const {
  KeyPath path = path_;
  path.push_back(key);
  return path;
}

void Section::WrongType(const KeyPath& path, const json& value, const std::string& wanted) {
  problems_.Add(path, "this must be " + wanted + ", not " + Shown(value));
}

const json* Section::Child(const char* key) {
  // Some keys are looked at twice.
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  const auto found = value_.find(key);
  return found == value_.end() ? nullptr : &*found;
}

const json& Section::Every() {
  every_ = true;
  return value_;
}

void Section::Flag(const char* key, bool& value) {
  const json* child = Child(key);
  if (child == nullptr) return;
  if (!child->is_boolean()) return WrongType(Path(key), *child, "true or false");
  value = child->get<bool>();
}

void Section::Integer(const char* key, std::uint32_t& value, std::uint32_t least, std::uint32_t most) {
  const json* child = Child(key);
  if (child == nullptr) return;
  const std::string range = "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
  if (!child->is_number_integer()) return WrongType(Path(key), *child, range);
  const bool fits = child->is_number_unsigned() && child->get<std::uint64_t>() >= least &&
                    child->get<std::uint64_t>() <= most;
  if (!fits) return problems_.Add(Path(key), Shown(*child) + " is out of range: write " + range);
  value = child->get<std::uint32_t>();
}

void Section::Fraction(const char* key, double& value, double least, double most) {
  const json* child = Child(key);
  if (child == nullptr) return;
  const std::string range = "a number from " + Number(least) + " to " + Number(most);
  if (!child->is_number()) return WrongType(Path(key), *child, range);
  const double number = child->get<double>();
  if (!(number >= least && number <= most)) {
    return problems_.Add(Path(key), Shown(*child) + " is out of range: write " + range);
  }
  value = number;
}

std::optional<Micros> Section::ReadDuration(const KeyPath& path, const json& value, Micros least,
                                            Micros most) {
  if (!value.is_string()) {
    WrongType(path, value, "a duration in quotes with its unit, such as \"" + FormatDuration(least) + "\"");
    return std::nullopt;
  }
  const auto duration = ParseDuration(value.get_ref<const std::string&>());
  if (!duration) {
    problems_.Add(path,
                  Shown(value) + " is not a duration; write it as \"200ms\", \"5m\", \"1h30m\" or \"7d\"");
    return std::nullopt;
  }
  if (*duration < least || *duration > most) {
    problems_.Add(path, Shown(value) + " is out of range: write a duration from " + FormatDuration(least) +
                            " to " + FormatDuration(most));
    return std::nullopt;
  }
  return *duration;
}

void Section::Duration(const char* key, Micros& value, Micros least, Micros most) {
  const json* child = Child(key);
  if (child == nullptr) return;
  if (const auto duration = ReadDuration(Path(key), *child, least, most)) value = *duration;
}

void Section::Durations(const char* key, std::vector<Micros>& value, Micros least, Micros most) {
  const json* child = Child(key);
  if (child == nullptr) return;
  if (!child->is_array())
    return WrongType(Path(key), *child, "a list of durations, such as [\"1m\", \"5m\"]");
  if (child->empty()) return problems_.Add(Path(key), "the list is empty: write at least one duration");
  if (child->size() > kMostDurations)
    return problems_.Add(Path(key), "the list has " + std::to_string(child->size()) +
                                        " durations: write at most " + std::to_string(kMostDurations));
  std::vector<Micros> durations;
  for (std::size_t i = 0; i < child->size(); ++i) {
    KeyPath path = Path(key);
    path.push_back(std::to_string(i));
    if (const auto duration = ReadDuration(path, (*child)[i], least, most)) durations.push_back(*duration);
  }
  if (durations.size() == child->size()) value = std::move(durations);
}

void Section::Text(const char* key, std::string& value, std::size_t longest) {
  const json* child = Child(key);
  if (child == nullptr) return;
  if (!child->is_string()) return WrongType(Path(key), *child, "a text in quotes");
  const auto& text = child->get_ref<const std::string&>();
  if (text.empty()) return problems_.Add(Path(key), "the text is empty: fill it in, or leave the key out");
  if (text.size() > longest) {
    return problems_.Add(Path(key),
                         "the text is longer than " + std::to_string(longest) + " bytes: shorten it");
  }
  value = text;
}

void Section::Texts(const char* key, std::vector<std::string>& value, std::size_t longest) {
  const json* child = Child(key);
  if (child == nullptr) return;
  if (!child->is_array()) return WrongType(Path(key), *child, "a list of texts");
  if (child->empty()) return problems_.Add(Path(key), "the list is empty: fill it in, or leave the key out");
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < child->size(); ++i) {
    KeyPath path = Path(key);
    path.push_back(std::to_string(i));
    const json& one = (*child)[i];
    if (!one.is_string()) {
      WrongType(path, one, "a text in quotes");
    } else if (one.get_ref<const std::string&>().empty() ||
               one.get_ref<const std::string&>().size() > longest) {
      problems_.Add(path, "write a text of 1 to " + std::to_string(longest) + " bytes");
    } else {
      texts.push_back(one.get<std::string>());
    }
  }
  if (texts.size() == child->size()) value = std::move(texts);
}

void Section::Tables(const char* key, std::vector<TableName>& value) {
  const json* child = Child(key);
  if (child == nullptr) return;
  if (!child->is_array()) return WrongType(Path(key), *child, "a list of texts");
  std::vector<TableName> tables;
  for (std::size_t i = 0; i < child->size(); ++i) {
    KeyPath path = Path(key);
    path.push_back(std::to_string(i));
    if (!(*child)[i].is_string()) {
      WrongType(path, (*child)[i], "a text in quotes");
    } else if (const auto table = ParseTableName((*child)[i].get_ref<const std::string&>())) {
      tables.push_back(*table);
    } else {
      problems_.Add(
          path, "this is not a table name: lower-case letters, digits and '_', a letter first, at most 48");
    }
  }
  if (tables.size() == child->size()) value = std::move(tables);
}

std::optional<std::size_t> Section::ChoiceOf(const char* key, const std::vector<std::string>& choices) {
  const json* child = Child(key);
  if (child == nullptr) return std::nullopt;
  std::string wanted;
  for (const std::string& choice : choices) wanted += (wanted.empty() ? "\"" : " or \"") + choice + "\"";
  if (!child->is_string()) {
    WrongType(Path(key), *child, wanted);
    return std::nullopt;
  }
  const auto found = std::find(choices.begin(), choices.end(), child->get_ref<const std::string&>());
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  problems_.Add(Path(key), Shown(*child) + " is not known: write " + wanted);
  return std::nullopt;
}

void Section::Object(const char* key, std::string& value) {
  const json* child = Child(key);
  if (child == nullptr) return;
  if (!child->is_object()) return WrongType(Path(key), *child, "an object, {…}");
  value = child->dump(-1, ' ', false, json::error_handler_t::replace);
}

void Section::Done() {
  if (every_) return;
  for (const auto& [key, value] : value_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    std::string all;
    for (const std::string& name : known_) all += (all.empty() ? "" : ", ") + name;
    const std::string hint = DidYouMean(key, known_);
    problems_.Add(Path(key), "unknown key" + (hint.empty() ? "; the keys here are " + all : hint));
  }
}

}  // namespace millrace::engine
