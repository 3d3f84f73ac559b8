// Where in a JSON text each key stands: the parser's tree carries no lines.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::engine {

// Keys from the root down; an array's elements by their index.
using KeyPath = std::vector<std::string>;

struct TextProblem {
  int line = 1;
  KeyPath path;
  std::string what;
};

// One pass over a text. Pure.
class PositionMap {
 public:
  // Levels of nesting; no key needs that many.
  static constexpr std::size_t kDeepest = 32;

  // Reads the text; `//` comments are allowed. Returns what makes it unusable: a syntax error, doubled keys,
  // nesting beyond 32 levels.
  static PositionMap Read(std::string_view text);

  const std::vector<TextProblem>& problems() const { return problems_; }
  // The line of a key; of its nearest parent where it has none.
  int Line(KeyPath path) const;

 private:
  friend class PositionReader;
  std::map<KeyPath, int> lines_;
  std::vector<TextProblem> problems_;
};

}  // namespace millrace::engine
