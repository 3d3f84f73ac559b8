#include "framework/base/escape.h"

#include <cstdio>

#include "framework/base/utf8.h"

namespace millrace::engine {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool IsControl(char32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

bool TurnsText(char32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool IsUnsafe(char32_t code) {
  const bool breaks_line = code == 0x2028 || code == 0x2029;
  return IsControl(code) || TurnsText(code) || breaks_line;
}

template <class... Values>
void AppendFormatted(std::string& out, const char* format, Values... values) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, format, values...);
  out += buffer;
}

void AppendEscape(std::string& out, char32_t code) {
  if (code == '\n') {
    out += "\\n";
  } else if (code == '\t') {
    out += "\\t";
  } else if (code == '\r') {
    out += "\\r";
  } else {
    AppendFormatted(out, code < 0x80 ? "\\x%02x" : "\\u{%x}", static_cast<unsigned>(code));
  }
}

// Calls `valid(code, bytes)` for each character and `broken(byte)` for each byte that is none.
template <class Valid, class Broken>
void ForEach(std::string_view text, Valid valid, Broken broken) {
  while (!text.empty()) {
    const std::size_t length = Utf8SequenceLength(text);
    if (length == 0) {
      broken(static_cast<unsigned char>(text[0]));
      text.remove_prefix(1);
    } else {
      valid(Utf8CodePoint(text.substr(0, length)), text.substr(0, length));
      text.remove_prefix(length);
    }
  }
}

}  // namespace

std::string Escape(std::string_view text, Backslash backslash) {
  std::string out;
  out.reserve(text.size());
  ForEach(
      text,
      [&](char32_t code, std::string_view bytes) {
        if (IsUnsafe(code)) {
          AppendEscape(out, code);
        } else {
          if (code == '\\' && backslash == Backslash::Doubled) out += '\\';
          out += bytes;
        }
      },
      [&](unsigned char byte) { AppendFormatted(out, "\\x%02x", byte); });
  return out;
}

std::string EscapeJson(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  ForEach(
      json,
      [&](char32_t code, std::string_view bytes) {
        if (code == '\t' || code == '\r') {
          out += ' ';
        } else if (IsUnsafe(code) && code != '\n') {
          AppendFormatted(out, "\\u%04x", static_cast<unsigned>(code));
        } else {
          out += bytes;
        }
      },
      [&](unsigned char) { out += kReplacement; });
  return out;
}

std::string EscapeBroken(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  const auto broken = [&](unsigned char byte) { AppendFormatted(out, "\\x%02x", byte); };
  ForEach(
      text, [&](char32_t code, std::string_view bytes) { code == 0 ? broken(0) : void(out += bytes); },
      broken);
  return out;
}

}  // namespace millrace::engine
