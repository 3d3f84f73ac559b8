// The key of each task of a fan-out, such as `{customer_id}-{month}`. Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/schedule/time_zone.h"

namespace millrace::engine {

// `{name}` is a column of the query; `{month}` (2026-11), `{day}` (2026-11-22) and `{hour}`
// (2026-11-22T18+0100: an hour that the clock shows twice is two) are the firing's, in its schedule's zone.
class KeyTemplate {
 public:
  // Invalid for a brace that is not closed, a name that could be no column, a template without a column,
  // whose tasks would all have one key, or two placeholders without anything between them, where 1 and 11
  // would be 11 and 1.
  static Result<KeyTemplate> Parse(std::string_view text);

  // The columns that it names, each once, in their order.
  const std::vector<std::string>& columns() const { return columns_; }
  // The key of one row. Invalid, with the column, where it is NULL (not in `row`) or empty; where the key is
  // longer than a task's may be.
  Result<std::string> KeyOf(const std::map<std::string, std::string>& row, WallTime firing,
                            const TimeZone& zone) const;

  const std::string& text() const { return text_; }
  bool operator==(const KeyTemplate& other) const { return text_ == other.text_; }

 private:
  struct Part {
    std::string text;  // as it is, or a placeholder's name
    bool placeholder = false;
  };
  std::string text_;
  std::vector<Part> parts_;
  std::vector<std::string> columns_;
};

}  // namespace millrace::engine
