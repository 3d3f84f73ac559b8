#include "message.h"

#include <millrace/mail_address.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

namespace send_mail {
namespace {

constexpr std::size_t kLineOfBase64 = 76;

std::string Trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return std::string(text.substr(first, text.find_last_not_of(" \t") - first + 1));
}

// As people write it, and not 2e+05.
std::string NumberText(double value) {
  char digits[400];  // the smallest has 324 places
  const bool plain = std::abs(value) < 1e15;
  const auto end = std::to_chars(digits, digits + sizeof digits, value,
                                 plain ? std::chars_format::fixed : std::chars_format::general)
                       .ptr;
  return {digits, end};
}

std::string ValueOf(const millrace::Json& params, const std::string& name) {
  const millrace::Json& value = params.At(name);
  if (value.IsText()) return value.AsText();
  if (value.IsInteger() || value.IsBool()) return value.Dump();
  if (value.IsNumber()) return NumberText(value.AsNumber());
  throw millrace::BadInput("'" + name + "' must be a text or a number, is " + value.KindName());
}

std::string Base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0U);
    for (std::size_t j = 0; j < 4; ++j) out += j <= count ? kDigits[group >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

bool IsPlainAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7F; });
}

// As encoded words of RFC 2047, split between characters.
std::string Encoded(std::string_view text) {
  constexpr std::size_t kBytesOfWord = 42;
  std::string out;
  while (!text.empty()) {
    std::size_t length = std::min(kBytesOfWord, text.size());
    while (length < text.size() && length > 1 && (static_cast<unsigned char>(text[length]) & 0xC0) == 0x80)
      --length;
    out += (out.empty() ? "=?UTF-8?B?" : "\r\n =?UTF-8?B?") + Base64(text.substr(0, length)) + "?=";
    text.remove_prefix(length);
  }
  return out;
}

std::string HeaderText(std::string text) {
  constexpr std::size_t kLongestPlain = 900;  // a line may have 998 characters
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; },
      ' ');
  text = Trimmed(text);
  return IsPlainAscii(text) && text.size() <= kLongestPlain && text.find("=?") == std::string::npos
             ? text
             : Encoded(text);
}

// Nothing of the key may break the header's grammar.
std::string MessageId(std::string_view key, std::string_view from) {
  std::string id;
  for (const char c : key) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    id += plain ? c : '.';
  }
  return "<" + id + std::string(from.substr(from.find('@'))) + ">";
}

// RFC 2045, 6.8: the line ends of a text are CR LF before it is encoded.
std::string WithCrLf(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '\n' && !out.ends_with('\r')) out += '\r';
    out += c;
  }
  return out;
}

std::string BodyLines(const std::string& body) {
  const std::string encoded = Base64(WithCrLf(body));
  std::string out;
  for (std::size_t i = 0; i < encoded.size(); i += kLineOfBase64)
    out += encoded.substr(i, kLineOfBase64) + "\r\n";
  return out;
}

// With what `value_of` gives for the name in each `{{name}}`.
template <class ValueForName>
std::string Filled(std::string_view text, const ValueForName& value_of) {
  std::string out;
  while (true) {
    const std::size_t open = text.find("{{");
    out += text.substr(0, open);
    if (open == std::string_view::npos) return out;
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos || text.find("{{", open + 2) < close)
      throw millrace::BadInput("a '{{' of a template is not closed by '}}'");
    out += value_of(Trimmed(text.substr(open + 2, close - open - 2)));
    text.remove_prefix(close + 2);
  }
}

}  // namespace

std::string ReadTemplate(const millrace::Json& options, const std::string& name) {
  std::string text = options.Text(name, "{{" + name + "}}");
  try {
    Filled(text, [](const std::string&) { return std::string(); });
  } catch (const millrace::BadInput& error) {
    throw millrace::BadInput("'" + name + "': " + error.what());
  }
  return text;
}

std::string Fill(std::string_view text, const millrace::Json& params) {
  return Filled(text, [&params](const std::string& name) { return ValueOf(params, name); });
}

Message Compose(const Templates& templates, const millrace::Json& params, std::string_view idempotency_key,
                const std::string& date) {
  Message message;
  message.to = Trimmed(Fill(templates.to, params));
  if (!millrace::IsMailAddress(message.to)) throw millrace::BadInput("the recipient is not a mail address");
  message.text = "From: <" + templates.from + ">\r\nTo: <" + message.to +
                 ">\r\nSubject: " + HeaderText(Fill(templates.subject, params)) + "\r\nDate: " + date +
                 "\r\nMessage-ID: " + MessageId(idempotency_key, templates.from) +
                 "\r\nMIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n"
                 "Content-Transfer-Encoding: base64\r\nAuto-Submitted: auto-generated\r\n\r\n" +
                 BodyLines(Fill(templates.body, params));
  return message;
}

}  // namespace send_mail
