// A small JSON value for handlers: parameters and options come as one. Standard library only.
//
// Reading is strict (RFC 8259) and bounded: nesting ends at 64. Where a value is missing or of another kind
// than asked for, BadInput is thrown with a message for the task's owner; a handler that lets it escape fails
// the task at once, since the same parameters would be as wrong the next time.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace millrace {
inline namespace handler_v1 {

// The input is wrong and will stay wrong: a parameter, an option, a secret that is missing.
class BadInput : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Json {
 private:
  template <class T>
  const T& Get(const char* wanted) const {
    if (const T* value = std::get_if<T>(&value_)) return *value;
    throw BadInput(std::string("must be ") + wanted + ", is " + KindName());
  }
  template <class Read>
  auto Named(std::string_view key, Read read) const {
    const Json& value = At(key);
    try {
      return read(value);
    } catch (const BadInput& error) {
      throw BadInput("'" + std::string(key) + "' " + error.what());
    }
  }

 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in the order of the text

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(std::int64_t{value}) {}
  Json(std::int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  // BadInput with line and column.
  static Json Parse(std::string_view text);
  // On one line; a number that JSON can't write (infinity) as null.
  std::string Dump() const;

  bool IsNull() const { return std::holds_alternative<std::monostate>(value_); }
  bool IsBool() const { return std::holds_alternative<bool>(value_); }
  bool IsInteger() const { return std::holds_alternative<std::int64_t>(value_); }  // written without fraction
  bool IsNumber() const { return IsInteger() || std::holds_alternative<double>(value_); }
  bool IsText() const { return std::holds_alternative<std::string>(value_); }
  bool IsArray() const { return std::holds_alternative<Array>(value_); }
  bool IsObject() const { return std::holds_alternative<Object>(value_); }

  bool AsBool() const { return Get<bool>("true or false"); }
  std::int64_t AsInteger() const { return Get<std::int64_t>("an integer"); }
  double AsNumber() const {
    return IsInteger() ? static_cast<double>(std::get<std::int64_t>(value_)) : Get<double>("a number");
  }
  const std::string& AsText() const { return Get<std::string>("a text"); }
  const Array& Items() const { return Get<Array>("a list"); }
  const Object& Members() const { return Get<Object>("an object"); }

  // A member of an object, nullptr where it is missing or null. The last of equal names counts.
  const Json* Find(std::string_view key) const {
    const Object& members = Members();
    for (auto member = members.rbegin(); member != members.rend(); ++member) {
      if (member->first == key) return member->second.IsNull() ? nullptr : &member->second;
    }
    return nullptr;
  }
  const Json& At(std::string_view key) const {
    if (const Json* found = Find(key)) return *found;
    throw BadInput("'" + std::string(key) + "' is missing");
  }

  // Members by key and kind, with a message that names the key. The forms with a fallback give it where the
  // member is missing or null.
  bool Bool(std::string_view key) const {
    return Named(key, [](const Json& v) { return v.AsBool(); });
  }
  std::int64_t Integer(std::string_view key) const {
    return Named(key, [](const Json& v) { return v.AsInteger(); });
  }
  double Number(std::string_view key) const {
    return Named(key, [](const Json& v) { return v.AsNumber(); });
  }
  std::string Text(std::string_view key) const {
    return Named(key, [](const Json& v) { return v.AsText(); });
  }
  bool Bool(std::string_view key, bool fallback) const { return Find(key) ? Bool(key) : fallback; }
  std::int64_t Integer(std::string_view key, std::int64_t fallback) const {
    return Find(key) ? Integer(key) : fallback;
  }
  // BadInput for one that is not `least` to `most`, too.
  std::int64_t Integer(std::string_view key, std::int64_t fallback, std::int64_t least,
                       std::int64_t most) const {
    const std::int64_t value = Integer(key, fallback);
    if (value >= least && value <= most) return value;
    throw BadInput("'" + std::string(key) + "' must be " + std::to_string(least) + " to " +
                   std::to_string(most) + ", is " + std::to_string(value));
  }
  double Number(std::string_view key, double fallback) const { return Find(key) ? Number(key) : fallback; }
  std::string Text(std::string_view key, std::string_view fallback) const {
    return Find(key) ? Text(key) : std::string(fallback);
  }

  // BadInput for a member of any other name, which somebody has misspelt: options are checked so.
  void AllowOnly(std::initializer_list<std::string_view> keys) const {
    for (const auto& [name, value] : Members()) {
      bool allowed = false;
      std::string all;
      for (const std::string_view key : keys) {
        allowed = allowed || key == name;
        all.append(all.empty() ? "" : ", ").append(key);
      }
      if (!allowed) throw BadInput("'" + name + "' is none of its options, which are " + all);
    }
  }

  const char* KindName() const {
    constexpr const char* kNames[] = {"null",   "true or false", "an integer", "a number",
                                      "a text", "a list",        "an object"};
    return kNames[value_.index()];
  }

  bool operator==(const Json&) const = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Object> value_;
};

// The text as a JSON string, with its quotes.
std::string JsonQuote(std::string_view text);

namespace detail {

class JsonParser {
 public:
  explicit JsonParser(std::string_view text) : text_(text) {}

  Json ParseAll() {
    Json value = Value(0);
    SkipSpace();
    if (at_ != text_.size()) Refuse("nothing more is expected here");
    return value;
  }

 private:
  static constexpr int kMaxDepth = 64;

  [[noreturn]] void Refuse(const std::string& why) const {
    std::size_t line = 1;
    std::size_t column = 1;
    for (const char c : text_.substr(0, at_)) {
      ++column;
      if (c == '\n') {
        ++line;
        column = 1;
      }
    }
    throw BadInput("not valid JSON at line " + std::to_string(line) + ", column " + std::to_string(column) +
                   ": " + why);
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool Eat(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void SkipSpace() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }

  Json Value(int depth) {
    if (depth > kMaxDepth) Refuse("it is nested too deeply");
    SkipSpace();
    if (at_ == text_.size()) Refuse("a value is missing");
    switch (Peek()) {
      case '{':
        return Members(depth);
      case '[':
        return Items(depth);
      case '"':
        return String();
      case 't':
        return Word("true", Json(true));
      case 'f':
        return Word("false", Json(false));
      case 'n':
        return Word("null", Json());
      default:
        return NumberValue();
    }
  }

  Json Word(std::string_view word, Json value) {
    if (!text_.substr(at_).starts_with(word)) Refuse("a value is expected");
    at_ += word.size();
    return value;
  }

  Json Members(int depth) {
    Json::Object members;
    ++at_;
    SkipSpace();
    if (Eat('}')) return members;
    do {
      SkipSpace();
      if (Peek() != '"') Refuse("a name in double quotes is expected");
      std::string name = String();
      SkipSpace();
      if (!Eat(':')) Refuse("a colon is expected");
      members.emplace_back(std::move(name), Value(depth + 1));
      SkipSpace();
    } while (Eat(','));
    if (!Eat('}')) Refuse("a comma or a closing brace is expected");
    return members;
  }

  Json Items(int depth) {
    Json::Array items;
    ++at_;
    SkipSpace();
    if (Eat(']')) return items;
    do {
      items.push_back(Value(depth + 1));
      SkipSpace();
    } while (Eat(','));
    if (!Eat(']')) Refuse("a comma or a closing bracket is expected");
    return items;
  }

  bool EatDigits() {
    const std::size_t from = at_;
    while (Peek() >= '0' && Peek() <= '9') ++at_;
    return at_ > from;
  }

  Json NumberValue() {
    const std::size_t from = at_;
    bool integer = true;
    Eat('-');
    if (!Eat('0') && !EatDigits()) Refuse("a value is expected");
    if (Eat('.')) {
      integer = false;
      if (!EatDigits()) Refuse("a digit is expected");
    }
    if (Eat('e') || Eat('E')) {
      integer = false;
      if (!Eat('-')) Eat('+');
      if (!EatDigits()) Refuse("a digit is expected");
    }
    const char* begin = text_.data() + from;
    const char* end = text_.data() + at_;
    std::int64_t whole = 0;
    if (integer && std::from_chars(begin, end, whole).ec == std::errc()) return whole;
    double real = 0;
    if (std::from_chars(begin, end, real).ec != std::errc()) Refuse("the number is out of range");
    return real;
  }

  std::string String() {
    std::string out;
    ++at_;
    while (true) {
      if (at_ >= text_.size()) Refuse("the text is not closed");
      const char c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20)
        Refuse("a control character stands in a text; write it as \\u00XX");
      ++at_;
      if (c == '"') return out;
      if (c == '\\') {
        Escape(out);
      } else {
        out += c;
      }
    }
  }

  void Escape(std::string& out) {
    constexpr std::string_view kNames = "\"\\/bfnrt";
    constexpr std::string_view kValues = "\"\\/\b\f\n\r\t";
    if (Eat('u')) return Unicode(out);
    const std::size_t which = at_ < text_.size() ? kNames.find(text_[at_]) : std::string_view::npos;
    if (which == std::string_view::npos) Refuse("an unknown escape");
    out += kValues[which];
    ++at_;
  }

  unsigned Hex4() {
    unsigned code = 0;
    if (text_.size() - at_ < 4) Refuse("four hexadecimal digits are expected");
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, begin + 4, code, 16);
    if (error != std::errc() || end != begin + 4) Refuse("four hexadecimal digits are expected");
    at_ += 4;
    return code;
  }

  void Unicode(std::string& out) {
    unsigned code = Hex4();
    if (code >= 0xDC00 && code < 0xE000) Refuse("half of a surrogate pair");
    if (code >= 0xD800 && code < 0xDC00) {
      if (!Eat('\\') || !Eat('u')) Refuse("half of a surrogate pair");
      const unsigned low = Hex4();
      if (low < 0xDC00 || low >= 0xE000) Refuse("half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    AppendUtf8(out, code);
  }

  static void AppendUtf8(std::string& out, unsigned code) {
    if (code < 0x80) {
      out += static_cast<char>(code);
      return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    constexpr unsigned kLead[] = {0, 0xC0, 0xE0, 0xF0};
    out += static_cast<char>(kLead[more] | (code >> (6 * more)));
    for (int i = more - 1; i >= 0; --i) out += static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

inline std::string NumberText(double value) {
  if (!std::isfinite(value)) return "null";
  char buffer[40];
  const auto [end, error] = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, error == std::errc() ? end : buffer);
}

}  // namespace detail

inline Json Json::Parse(std::string_view text) { return detail::JsonParser(text).ParseAll(); }

inline std::string JsonQuote(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  return out + '"';
}

inline std::string Json::Dump() const {
  if (IsNull()) return "null";
  if (IsBool()) return AsBool() ? "true" : "false";
  if (IsInteger()) return std::to_string(AsInteger());
  if (IsNumber()) return detail::NumberText(AsNumber());
  if (IsText()) return JsonQuote(AsText());
  std::string out;
  if (IsArray()) {
    for (const Json& item : Items()) out += (out.empty() ? "" : ",") + item.Dump();
    return "[" + out + "]";
  }
  for (const auto& [name, value] : Members())
    out += (out.empty() ? "" : ",") + JsonQuote(name) + ":" + value.Dump();
  return "{" + out + "}";
}

}  // namespace handler_v1
}  // namespace millrace
