#include "framework/store/mysql/sql_text.h"

#include <cassert>

namespace millrace::engine::mysql {
namespace {

std::string Hex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "x'";
  for (const char c : bytes) {
    out += kDigits[static_cast<unsigned char>(c) >> 4];
    out += kDigits[static_cast<unsigned char>(c) & 15];
  }
  return out += '\'';
}

std::string Literal(const sql::Value& value) {
  switch (value.kind) {
    case sql::Value::Kind::Null:
      return "NULL";
    case sql::Value::Kind::Integer:
      return std::to_string(value.integer);
    case sql::Value::Kind::Unsigned:
      return std::to_string(static_cast<std::uint64_t>(value.integer));
    case sql::Value::Kind::Text:
      return Quote(value.text);
    case sql::Value::Kind::Bytes:
      return Hex(value.text);
    case sql::Value::Kind::Real:
      break;  // no cold statement has any
  }
  assert(!"a value that a statement may have");
  return {};
}

}  // namespace

std::string Quote(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 2);
  out += '\'';
  for (const char c : text) {
    switch (c) {
      case '\0':
        out += "\\0";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\x1a':
        out += "\\Z";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\'':
        out += "\\'";
        break;
      case '"':
        out += "\\\"";
        break;
      default:
        out += c;
    }
  }
  return out += '\'';
}

std::string QuoteOrNull(std::string_view text) { return text.empty() ? "NULL" : Quote(text); }

std::string TimeLiteral(WallTime time) { return "'" + sql::TimeText(time) + "'"; }

std::string After(Micros delay) {
  return "UTC_TIMESTAMP(6) + INTERVAL " + std::to_string(delay.count()) + " MICROSECOND";
}

std::string WithValues(std::string_view text, std::span<const sql::Value> values) {
  std::string out;
  out.reserve(text.size() + 32 * values.size());
  for (const sql::Value& value : values) {
    const std::size_t at = text.find('?');
    assert(at != std::string_view::npos);
    out += text.substr(0, at);
    out += Literal(value);
    text.remove_prefix(at + 1);
  }
  assert(text.find('?') == std::string_view::npos);
  out += text;
  return out;
}

}  // namespace millrace::engine::mysql
