#include "framework/store/row_params.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "framework/base/escape.h"
#include "framework/base/utf8.h"

namespace millrace::engine {
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

Result<std::string> CellToJson(std::string_view cell, CellType type) {
  if (cell.empty()) return std::string("null");
  if (type == CellType::AsItLooks && (IsShortWholeNumber(cell) || IsFaithfulNumber(cell)))
    return std::string(cell);
  if (std::all_of(cell.begin(), cell.end(), IsPlain)) return "\"" + std::string(cell) + "\"";
  try {
    return nlohmann::json(cell).dump();
  } catch (const nlohmann::json::exception&) {
    return Fail(ErrorCode::Invalid,
                "the text is not UTF-8: convert the file, for example with iconv -f WINDOWS-1252 -t UTF-8");
  }
}

std::string NameToJson(std::string_view name) {
  return nlohmann::json(name).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Result<std::string> RowToJson(std::span<const JsonColumn> columns,
                              std::span<const std::optional<std::string>> cells) {
  std::string object = "{";
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const JsonColumn& column = columns[i];
    auto value = cells[i] ? CellToJson(*cells[i], column.type) : std::string("null");
    if (!value)
      return Fail(ErrorCode::Invalid,
                  "column '" + Escape(Excerpt(column.name)) + "': " + value.error().message);
    if (i > 0) object += ',';
    object.append(column.json_name).append(1, ':').append(*value);
  }
  object += '}';
  return object;
}

}  // namespace millrace::engine
