#include "coordinator/app/input/json_row.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "framework/base/escape.h"
#include "framework/base/suggest.h"
#include "framework/base/time_text.h"

namespace millrace::engine {

using nlohmann::ordered_json;

namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// What most cells of a large file are: the parser would say the same, an allocation later.
bool IsShortWholeNumber(std::string_view text) {
  if (text[0] == '-') text.remove_prefix(1);
  if (text.empty() || text.size() > 18 || !std::all_of(text.begin(), text.end(), IsDigit)) return false;
  return text[0] != '0' || text.size() == 1;
}

// Stands in a JSON text as it is.
bool IsPlain(char c) { return c >= ' ' && c < '\x7F' && c != '"' && c != '\\'; }

std::size_t SignificantDigits(std::string_view text) {
  std::size_t count = 0;
  for (char c : text.substr(0, text.find_first_of("eE"))) {
    if (IsDigit(c) && (count > 0 || c != '0')) ++count;
  }
  return count;
}

std::string JsonProblem(const nlohmann::json::exception& error) {
  std::string_view message = error.what();
  if (const auto at = message.find("at line"); at != std::string_view::npos) message = message.substr(at);
  return Escape(Shorten(message, 200));
}

// Whoever writes or compares a value calls itself for each level of it, the databases too, which refuse more
// than some tens or hundreds of levels. Brackets in texts count for nothing.
bool IsTooDeep(std::string_view text) {
  constexpr int kMostLevels = 100;  // MySQL's own limit
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if ((c == '[' || c == '{') && ++depth > kMostLevels) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

Result<ordered_json> ParseJson(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF"))
    return Fail(ErrorCode::Invalid, "this is not JSON: it begins with a byte order mark; take it out");
  if (text.find('\0') != std::string_view::npos)  // the parser takes it for the end
    return Fail(ErrorCode::Invalid, "this is not JSON: it holds a NUL byte");
  if (IsTooDeep(text))
    return Fail(ErrorCode::Invalid, "the JSON is nested more than 100 levels deep; make it flatter");
  try {
    return ordered_json::parse(text.begin(), text.end());
  } catch (const nlohmann::json::exception& error) {
    return Fail(ErrorCode::Invalid, "this is not JSON: " + JsonProblem(error));
  }
}

// Whether the line is JSON, and certainly the bare params: all that has to be known of it then is that it can
// be read. A member's name may be spelt by escapes.
bool IsBareJson(std::string_view text) {
  if (text.find("\"params\"") != std::string_view::npos || text.find('\\') != std::string_view::npos)
    return false;
  return text.find('\0') == std::string_view::npos && !text.starts_with("\xEF\xBB\xBF") && !IsTooDeep(text) &&
         ordered_json::accept(text.begin(), text.end());
}

Result<std::string> KeyFrom(const ordered_json& params, const std::string& column) {
  const auto found = params.is_object() ? params.find(column) : params.end();
  if (!params.is_object() || found == params.end() || found->is_null()) {
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
  if (name == "key") {
    task.biz_key = text;
  } else if (name == "batch") {
    task.batch = text;
  } else if (name == "at") {
    BOOST_OUTCOME_TRY(at, ParseTime(text));
    task.run_at = at;
    task.delay.reset();
  } else {
    BOOST_OUTCOME_TRY(delay, ParseDuration(text));
    task.delay = delay;
    task.run_at.reset();
  }
  return {};
}

const std::vector<std::string> kMembers{"params", "key", "at", "in", "priority", "batch"};

}  // namespace

// The grammar, and which whole numbers fit, are the parser's, which skips white space and makes 0 of what is
// too small.
bool IsFaithfulNumber(std::string_view text) {
  if (text.empty() || !IsDigit(text.back()) || (!IsDigit(text[0]) && text[0] != '-')) return false;
  if (text.find('\0') != std::string_view::npos) return false;  // the parser's end of input
  const nlohmann::json value = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (text.find_first_of(".eE") == std::string_view::npos) return value.is_number_integer();
  double number = 0;
  const bool fits = std::from_chars(text.data(), text.data() + text.size(), number).ec == std::errc();
  return value.is_number() && fits && SignificantDigits(text) <= 17;
}

Result<std::string> CellToJson(std::string_view cell) {
  if (cell.empty()) return std::string("null");
  if (IsShortWholeNumber(cell) || IsFaithfulNumber(cell)) return std::string(cell);
  if (std::all_of(cell.begin(), cell.end(), IsPlain)) return "\"" + std::string(cell) + "\"";
  try {
    return nlohmann::json(cell).dump();
  } catch (const nlohmann::json::exception&) {
    return Fail(ErrorCode::Invalid,
                "the text is not UTF-8: convert the file, for example with iconv -t UTF-8");
  }
}

std::string NameToJson(std::string_view name) {
  return nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::string> RowToJson(std::span<const std::string> columns, std::span<const std::string> names,
                              std::span<const std::optional<std::string>> cells) {
  std::string object = "{";
  for (std::size_t i = 0; i < names.size(); ++i) {
    auto value = cells[i] ? CellToJson(*cells[i]) : std::string("null");
    if (!value) return Fail(ErrorCode::Invalid, "column '" + columns[i] + "': " + value.error().message);
    if (i > 0) object += ',';
    object.append(names[i]).append(1, ':').append(*value);
  }
  object += '}';
  return object;
}

Status CheckJson(std::string_view text) {
  BOOST_OUTCOME_TRYV(ParseJson(text));
  return {};
}

Result<NewTask> LineToTask(std::string_view line, const NewTask& defaults, const std::string& key_column) {
  NewTask task = defaults;
  task.params = std::string(line);
  if (key_column.empty() && IsBareJson(line)) return task;
  BOOST_OUTCOME_TRY(value, ParseJson(line));
  const bool wrapped = value.is_object() && value.contains("params");
  if (wrapped) {
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
