#include "framework/store/mysql/sql_text.h"

#include <array>
#include <cassert>
#include <charconv>

namespace millrace::engine::mysql {
namespace {

void AppendHex(std::string& out, std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  out += "x'";
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  out += '\'';
}

// What stands behind the backslash for a byte that may not stand in a literal; 0 for all others.
constexpr std::array<char, 256> kEscapes = [] {
  std::array<char, 256> escapes{};
  escapes['\0'] = '0';
  escapes['\n'] = 'n';
  escapes['\r'] = 'r';
  escapes['\x1a'] = 'Z';
  for (const char self : {'\\', '\'', '"'}) escapes[static_cast<unsigned char>(self)] = self;
  return escapes;
}();

void AppendQuoted(std::string& out, std::string_view text) {
  out += '\'';
  std::size_t plain = 0;  // where the bytes begin that stand as they are
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char escape = kEscapes[static_cast<unsigned char>(text[i])];
    if (escape == 0) continue;
    out.append(text, plain, i - plain);
    out += '\\';
    out += escape;
    plain = i + 1;
  }
  out.append(text, plain);
  out += '\'';
}

// A range for fewer would be as dear: each row is compared with one range after another.
constexpr std::size_t kShortestRange = 32;

template <class Number>
void AppendNumber(std::string& out, Number number) {
  char digits[24];
  out.append(digits, std::to_chars(digits, digits + sizeof digits, number).ptr);
}

void AppendLiteral(std::string& out, const sql::Value& value) {
  switch (value.kind) {
    case sql::Value::Kind::Null:
      out += "NULL";
      return;
    case sql::Value::Kind::Integer:
      return AppendNumber(out, value.integer);
    case sql::Value::Kind::Unsigned:
      return AppendNumber(out, static_cast<std::uint64_t>(value.integer));
    case sql::Value::Kind::Text:
      return AppendQuoted(out, value.text);
    case sql::Value::Kind::Bytes:
      return AppendHex(out, value.text);
    case sql::Value::Kind::Real:
      break;  // no cold statement has any
  }
  assert(!"a value that a statement may have");
}

void AppendById(std::string& out, std::span<const FromId> parts) {
  if (parts.size() == 1) {
    out += parts.front().value;
    return;
  }
  const std::size_t middle = parts.size() / 2;
  out += "IF(id<";
  AppendNumber(out, parts[middle].first);
  out += ',';
  AppendById(out, parts.first(middle));
  out += ',';
  AppendById(out, parts.subspan(middle));
  out += ')';
}

}  // namespace

std::string Quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  AppendQuoted(out, text);
  return out;
}

std::string WithIds(std::span<const std::uint64_t> ids) {
  std::string ranges;
  std::vector<std::uint64_t> others;
  others.reserve(ids.size());
  while (!ids.empty()) {
    std::size_t run = 1;
    while (run < ids.size() && ids[run] == ids[0] + run) ++run;
    const bool is_range = run >= kShortestRange;
    if (is_range)
      ranges += "id BETWEEN " + std::to_string(ids[0]) + " AND " + std::to_string(ids[run - 2]) + " OR ";
    const auto named = ids.first(run).last(is_range ? 1 : run);
    others.insert(others.end(), named.begin(), named.end());
    ids = ids.subspan(run);
  }
  const std::string rest = "id IN (" + List(others) + ")";
  return ranges.empty() ? rest : "(" + ranges + rest + ")";
}

std::string TimeLiteral(WallTime time) { return "'" + sql::TimeText(time) + "'"; }

std::string ById(std::span<const FromId> parts) {
  std::string out;
  AppendById(out, parts);
  return out;
}

std::string After(Micros delay) {
  return "UTC_TIMESTAMP(6) + INTERVAL " + std::to_string(delay.count()) + " MICROSECOND";
}

std::string WithValues(std::string_view text, std::span<const sql::Value> values) {
  std::string out;
  std::size_t bytes = text.size();
  for (const sql::Value& value : values) bytes += value.text.size() + 8;
  out.reserve(bytes);
  for (const sql::Value& value : values) {
    const std::size_t at = text.find('?');
    assert(at != std::string_view::npos);
    out += text.substr(0, at);
    AppendLiteral(out, value);
    text.remove_prefix(at + 1);
  }
  assert(text.find('?') == std::string_view::npos);
  out += text;
  return out;
}

}  // namespace millrace::engine::mysql
