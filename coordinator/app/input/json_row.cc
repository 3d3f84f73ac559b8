#include "coordinator/app/input/json_row.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "framework/base/escape.h"
#include "framework/base/suggest.h"
#include "framework/base/time_text.h"

namespace millrace::engine {

using nlohmann::ordered_json;

namespace {

// Most of what is read is one line, of a file that has others.
std::string JsonProblem(const nlohmann::json::exception& error) {
  std::string_view message = error.what();
  if (const auto at = message.find("at line"); at != std::string_view::npos) message = message.substr(at);
  constexpr std::string_view kOneLine = "at line 1, ";
  const bool first = message.starts_with(kOneLine);
  if (first) message.remove_prefix(kOneLine.size());
  return Escape(Shorten((first ? "at " : "") + std::string(message), 200));
}

// Whoever writes or compares a value calls itself for each level of it, the databases too, which refuse more
// than some tens or hundreds of levels.
constexpr std::size_t kMostLevels = 100;  // MySQL's own limit

// Reads a text once and keeps nothing of it but what has to be known of params: that they are an object, not
// too deep, and without two members of one name.
class ParamsReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return Value("null"); }
  bool boolean(bool) override { return Value("true or false"); }
  bool number_integer(number_integer_t) override { return Value("a number"); }
  bool number_unsigned(number_unsigned_t) override { return Value("a number"); }
  bool number_float(number_float_t, const string_t& text) override {
    return text.find_first_of(".eE") == string_t::npos ? TooLong(text) : Value("a number");
  }
  bool string(string_t&) override { return Value("a text"); }
  bool binary(binary_t&) override { return Value("binary data"); }
  bool start_array(std::size_t) override { return Value("a list") && Enter(); }
  bool end_array() override { return Leave(); }
  bool start_object(std::size_t) override { return Enter(); }
  bool key(string_t& name) override {
    if (levels_.size() == 1 && name == "params") wrapped_ = true;
    levels_.back().push_back(std::move(name));
    return true;
  }
  bool end_object() override {
    std::vector<std::string>& names = levels_.back();
    std::sort(names.begin(), names.end());
    const auto twice = std::adjacent_find(names.begin(), names.end());
    if (twice != names.end()) {
      problem_ = "the JSON has the member '" + Escape(Shorten(*twice, 80)) +
                 "' twice in one object: take one of them out";
      return false;
    }
    return Leave();
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception& error) override {
    problem_ = "this is not JSON: " + JsonProblem(error);
    return false;
  }

  const std::string& problem() const { return problem_; }
  bool wrapped() const { return wrapped_; }  // it has a member `params`

 private:
  bool Value(const char* what) {
    if (!levels_.empty()) return true;
    problem_ = std::string("params are a JSON object, such as {\"id\":1}; this is ") + what;
    return false;
  }
  // Read as a number it would be another one: two that differ in their last digits the same.
  bool TooLong(const std::string& number) {
    problem_ = "the whole number " + Shorten(number, 40) + " is beyond 64 bits: write it in quotes";
    return false;
  }
  bool Enter() {
    levels_.emplace_back();
    if (levels_.size() <= kMostLevels) return true;
    problem_ = "the JSON is nested more than 100 levels deep; make it flatter";
    return false;
  }
  bool Leave() {
    levels_.pop_back();
    return true;
  }

  std::vector<std::vector<std::string>> levels_;  // the members' names so far, from the root down
  std::string problem_;
  bool wrapped_ = false;
};

// Whether it has a member `params`; Invalid as CheckParams.
Result<bool> IsWrapped(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF"))
    return Fail(ErrorCode::Invalid, "this is not JSON: it begins with a byte order mark; take it out");
  if (text.find('\0') != std::string_view::npos) {  // the parser takes it for the end
    return Fail(ErrorCode::Invalid,
                "this is not JSON: it holds a NUL byte; a text in UTF-16 does: convert it, for example with "
                "iconv -f UTF-16 -t UTF-8");
  }
  ParamsReader reader;
  if (nlohmann::json::sax_parse(text.begin(), text.end(), &reader)) return reader.wrapped();
  return Fail(ErrorCode::Invalid, reader.problem());
}

Result<std::string> KeyFrom(const ordered_json& params, const std::string& column) {
  const auto found = params.find(column);
  if (found == params.end() || found->is_null()) {
    return Fail(ErrorCode::Invalid, "the params have no '" + column + "' to take the key from");
  }
  if (found->is_structured())
    return Fail(ErrorCode::Invalid, "the key '" + column + "' is not a text or number");
  std::string key = found->is_string() ? found->get<std::string>() : found->dump();
  if (key.empty()) return Fail(ErrorCode::Invalid, "the key '" + column + "' is empty");
  return key;
}

Result<std::string> TextMember(const std::string& name, const ordered_json& value) {
  if (!value.is_string()) return Fail(ErrorCode::Invalid, "'" + name + "' must be a text in quotes");
  return value.get<std::string>();
}

Status ReadMember(const std::string& name, const ordered_json& value, NewTask& task) {
  if (name == "params") {
    if (!value.is_object())
      return Fail(ErrorCode::Invalid, "'params' must be a JSON object, such as {\"id\":1}");
    task.params = value.dump();
    return {};
  }
  if (name == "priority") {
    if (!value.is_number_unsigned() || value.get<std::uint64_t>() > 9) {
      return Fail(ErrorCode::Invalid, "'priority' must be a whole number from 0 (most urgent) to 9");
    }
    task.priority = value.get<std::uint32_t>();
    return {};
  }
  if (name == "key" && value.is_number()) {
    task.biz_key = value.dump();
    return {};
  }
  BOOST_OUTCOME_TRY(text, TextMember(name, value));
  if (text.empty()) return Fail(ErrorCode::Invalid, "'" + name + "' is empty: leave it out, or give one");
  if (name == "key") {
    task.biz_key = text;
  } else if (name == "batch") {
    task.batch = text;
  } else if (name == "at" || name == "expires_at") {
    const auto at = ParseTime(text);
    if (!at) return Fail(ErrorCode::Invalid, "'" + name + "': " + at.error().message);
    (name == "at" ? task.run_at : task.expires_at) = *at;
    (name == "at" ? task.delay : task.expires_in).reset();
  } else {
    const auto after = ParseDuration(text);
    if (!after) return Fail(ErrorCode::Invalid, "'" + name + "': " + after.error().message);
    (name == "in" ? task.delay : task.expires_in) = *after;
    (name == "in" ? task.run_at : task.expires_at).reset();
  }
  return {};
}

const std::vector<std::string> kMembers{"params",   "key",   "at",         "in",
                                        "priority", "batch", "expires_at", "expires_in"};

}  // namespace

Status CheckParams(std::string_view text) {
  BOOST_OUTCOME_TRYV(IsWrapped(text));
  return {};
}

bool SaysTheSame(std::string_view a, std::string_view b) {
  using nlohmann::json;
  return a == b ||
         json::parse(a.begin(), a.end(), nullptr, false) == json::parse(b.begin(), b.end(), nullptr, false);
}

Result<NewTask> LineToTask(std::string_view line, const NewTask& defaults, const std::string& key_column) {
  NewTask task = defaults;
  task.params = std::string(line);
  BOOST_OUTCOME_TRY(wrapped, IsWrapped(line));
  if (key_column.empty() && !wrapped) return task;
  const ordered_json value = ordered_json::parse(line.begin(), line.end());
  if (wrapped) {
    for (const auto& [at, in] : {std::pair("at", "in"), {"expires_at", "expires_in"}}) {
      if (value.contains(at) && value.contains(in))
        return Fail(ErrorCode::Invalid, std::string("give either '") + at + "' or '" + in + "'");
    }
    for (const auto& [name, member] : value.items()) {
      if (std::find(kMembers.begin(), kMembers.end(), name) == kMembers.end()) {
        return Fail(ErrorCode::Invalid, "unknown member '" + Escape(Shorten(name, 80)) + "' beside 'params'" +
                                            DidYouMean(name, kMembers));
      }
      BOOST_OUTCOME_TRYV(ReadMember(name, member, task));
    }
  }
  if (!key_column.empty()) {
    BOOST_OUTCOME_TRY(key, KeyFrom(wrapped ? value["params"] : value, key_column));
    task.biz_key = key;
  }
  return task;
}

}  // namespace millrace::engine
