#include "framework/config/position_map.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "framework/base/utf8.h"

namespace millrace::engine {

using nlohmann::json;

namespace {

// Where the parser is: it reads through an iterator that counts. The parser looks one character ahead behind
// a number only, so the line of the last character read is the line of the token at hand.
struct Cursor {
  int line = 1;
  bool break_pending = false;
};

class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, Cursor* cursor) : at_(at), cursor_(cursor) {}
  const char& operator*() const { return *at_; }
  CountingIterator& operator++() {
    if (cursor_->break_pending) ++cursor_->line;
    cursor_->break_pending = *at_ == '\n';
    ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  Cursor* cursor_;
};

// The library's words without its error number and its own idea of the position. It quotes all that it has
// read of a word, however long.
std::string SyntaxProblem(std::string_view message) {
  if (const auto colon = message.find(": ", message.find("column")); colon != std::string_view::npos) {
    message = message.substr(colon + 2);
  }
  return Excerpt(message, 300);
}

}  // namespace

class PositionReader final : public nlohmann::json_sax<json> {
 public:
  PositionReader(PositionMap& map, Cursor& cursor) : map_(map), cursor_(cursor) {}

  bool null() override { return Value(); }
  bool boolean(bool) override { return Value(); }
  bool number_integer(number_integer_t) override { return Value(); }
  bool number_unsigned(number_unsigned_t) override { return Value(); }
  bool number_float(number_float_t, const string_t&) override { return Value(); }
  bool string(string_t&) override { return Value(); }
  bool binary(binary_t&) override { return Value(); }
  bool start_object(std::size_t) override { return Enter(false); }
  bool end_object() override { return Leave(); }
  bool start_array(std::size_t) override { return Enter(true); }
  bool end_array() override { return Leave(); }

  bool key(string_t& name) override {
    path_.back() = name;
    const auto [at, fresh] = map_.lines_.emplace(path_, cursor_.line);
    if (!fresh) {
      map_.problems_.push_back({cursor_.line, path_,
                                "this key stands here for the second time (first in line " +
                                    std::to_string(at->second) + "); keep one of them"});
    }
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    map_.problems_.push_back({cursor_.line, {}, "not valid JSON: " + SyntaxProblem(error.what())});
    return false;
  }

 private:
  struct Level {
    bool array = false;
    std::size_t next = 0;
  };

  bool Value() {
    if (!levels_.empty() && levels_.back().array) {
      path_.back() = std::to_string(levels_.back().next++);
      map_.lines_.emplace(path_, cursor_.line);
    }
    return true;
  }
  bool Enter(bool array) {
    Value();
    if (levels_.size() == PositionMap::kDeepest) {
      map_.problems_.push_back({cursor_.line, {}, "nested more than 32 levels deep; no key needs that"});
      return false;
    }
    levels_.push_back({array, 0});
    path_.emplace_back();
    return true;
  }
  bool Leave() {
    levels_.pop_back();
    path_.pop_back();
    return true;
  }

  PositionMap& map_;
  Cursor& cursor_;
  KeyPath path_;
  std::vector<Level> levels_;
};

PositionMap PositionMap::Read(std::string_view text) {
  PositionMap map;
  Cursor cursor;
  PositionReader reader(map, cursor);
  json::sax_parse(CountingIterator(text.data(), &cursor),
                  CountingIterator(text.data() + text.size(), &cursor), &reader, json::input_format_t::json,
                  true, true);
  return map;
}

int PositionMap::Line(KeyPath path) const {
  while (!path.empty()) {
    if (const auto found = lines_.find(path); found != lines_.end()) return found->second;
    path.pop_back();
  }
  return 1;
}

}  // namespace millrace::engine
