#include "framework/schedule/key_template.h"

#include <algorithm>
#include <cctype>

#include "framework/base/escape.h"
#include "framework/base/utf8.h"
#include "framework/schedule/timing.h"
#include "framework/task/task.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kLongestTemplate = 256;
constexpr std::size_t kLongestColumn = 64;

bool IsTimeWord(std::string_view name) { return name == "month" || name == "day" || name == "hour"; }

bool IsColumnName(std::string_view name) {
  return !name.empty() && name.size() <= kLongestColumn &&
         !std::isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
}

std::string TimeWord(std::string_view name, WallTime firing, const TimeZone& zone) {
  const std::string local = FormatLocal(firing, zone);  // 2026-11-22 18:00 +0100
  if (name == "month") return local.substr(0, 7);
  if (name == "day") return local.substr(0, 10);
  return local.substr(0, 10) + 'T' + local.substr(11, 2) + local.substr(local.size() - 5);
}

Failure RefuseKey(std::string_view text, const std::string& what) {
  return Fail(ErrorCode::Invalid, "the key '" + Escape(Excerpt(text)) + "' " + what);
}

}  // namespace

Result<KeyTemplate> KeyTemplate::Parse(std::string_view text) {
  if (text.size() > kLongestTemplate) return RefuseKey(text, "is longer than 256 bytes: shorten it");
  KeyTemplate key;
  key.text_ = text;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t open = rest.find_first_of("{}");
    if (open != 0) {
      key.parts_.push_back({std::string(rest.substr(0, open))});
      rest.remove_prefix(std::min(open, rest.size()));
      continue;
    }
    const std::size_t close = rest.find('}');
    if (rest[0] == '}' || close == std::string_view::npos) {
      return RefuseKey(text, "has a brace that stands alone: write {column}");
    }
    const std::string name(rest.substr(1, close - 1));
    rest.remove_prefix(close + 1);
    if (!IsColumnName(name)) {
      return RefuseKey(text, "names '" + Escape(Excerpt(name, 40)) +
                                 "', which is no column: write letters, digits and '_', or give the column "
                                 "such a name by AS");
    }
    if (!key.parts_.empty() && key.parts_.back().placeholder) {
      return RefuseKey(text, "has nothing between {" + key.parts_.back().text + "} and {" + name +
                                 "}, so that two rows could have one key: write a '-' between them");
    }
    key.parts_.push_back({name, true});
    if (!IsTimeWord(name) && std::find(key.columns_.begin(), key.columns_.end(), name) == key.columns_.end())
      key.columns_.push_back(name);
  }
  if (key.columns_.empty()) {
    return RefuseKey(text,
                     "names no column of the query, so that all its rows would have one key: write "
                     "\"{customer_id}-{month}\", with a column of yours");
  }
  return key;
}

Result<std::string> KeyTemplate::KeyOf(const std::map<std::string, std::string>& row, WallTime firing,
                                       const TimeZone& zone) const {
  std::string key;
  for (const Part& part : parts_) {
    if (!part.placeholder) {
      key += part.text;
    } else if (IsTimeWord(part.text)) {
      key += TimeWord(part.text, firing, zone);
    } else {
      const auto column = row.find(part.text);
      if (column == row.end() || column->second.empty()) {
        return RefuseKey(text_, "lacks its column " + part.text + ": the query gives NULL or nothing for it");
      }
      key += column->second;
    }
  }
  if (key.size() > kMaxKey) {
    return RefuseKey(text_, "would be " + std::to_string(key.size()) + " bytes long, more than " +
                                std::to_string(kMaxKey) + ": '" + Escape(Excerpt(key, 40)) + "'");
  }
  return key;
}

}  // namespace millrace::engine
