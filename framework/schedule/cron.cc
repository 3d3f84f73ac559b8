#include "framework/schedule/cron.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <vector>

#include "framework/base/suggest.h"
#include "framework/base/utf8.h"

namespace millrace::engine {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::local_days;
using std::chrono::minutes;
using std::chrono::year_month_day;

constexpr std::size_t kLongest = 256;
constexpr auto kCalendarRepeats = days(146'097);

struct CronWord {
  std::string_view word;
  std::string_view meaning;
};
constexpr CronWord kShorthands[] = {
    {"@hourly", "0 * * * *"},  {"@daily", "0 0 * * *"},  {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
    {"@monthly", "0 0 1 * *"}, {"@yearly", "0 0 1 1 *"}, {"@annually", "0 0 1 1 *"},
};

constexpr std::string_view kMonthNames[] = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                                            "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
constexpr std::string_view kWeekdayNames[] = {"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"};

struct CronField {
  const char* name;
  int least;
  int most;
  std::span<const std::string_view> names;
};
// Of the weekdays 7 is Sunday, too.
constexpr CronField kFields[] = {{"minute", 0, 59, {}},
                                 {"hour", 0, 23, {}},
                                 {"day of the month", 1, 31, {}},
                                 {"month", 1, 12, kMonthNames},
                                 {"day of the week", 0, 7, kWeekdayNames}};
enum FieldNumber { kMinute, kHour, kDay, kMonth, kWeekday };

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

std::vector<std::string_view> Split(std::string_view text, std::string_view separators, bool keep_empty) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find_first_of(separators);
    if (const std::string_view part = text.substr(0, end); keep_empty || !part.empty()) parts.push_back(part);
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<int> ValueOf(std::string_view text, const CronField& field) {
  if (!text.empty() && text.size() <= 3 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); })) {
    return std::stoi(std::string(text));
  }
  const auto found = std::find(field.names.begin(), field.names.end(), Upper(text));
  if (found == field.names.end()) return std::nullopt;
  return field.least + static_cast<int>(found - field.names.begin());
}

}  // namespace

// Reads one expression, field by field.
class CronReader {
 public:
  Result<Cron> Read(std::string_view text) {
    if (text.size() > kLongest) return Refuse("it is longer than 256 bytes");
    std::vector<std::string_view> fields = Split(text, " \t", false);
    if (!fields.empty() && fields[0].starts_with('@')) {
      BOOST_OUTCOME_TRY(meaning, MeaningOf(fields));
      cron_.text_ = fields[0];
      fields = Split(meaning, " ", false);
    }
    if (fields.size() != std::size(kFields)) {
      return Refuse("it has " + std::to_string(fields.size()) +
                    " fields; write five: minute, hour, day of the month, month, day of the week, such as "
                    "0 2 * * * for every day at 02:00" +
                    (fields.size() == 6 ? " (there are no seconds and no years)" : ""));
    }
    for (std::size_t i = 0; i < fields.size(); ++i) {
      for (const std::string_view item : Split(fields[i], ",", true)) {
        BOOST_OUTCOME_TRYV(ReadItem(i, item));
      }
    }
    cron_.names_minutes_ = fields[kMinute][0] != '*';
    cron_.names_hours_ = fields[kHour][0] != '*';
    cron_.names_days_ = fields[kDay][0] != '*';
    cron_.names_weekdays_ = fields[kWeekday][0] != '*';
    if (cron_.text_.empty()) {
      for (const std::string_view field : fields)
        (cron_.text_ += cron_.text_.empty() ? "" : " ").append(field);
    }
    if (!cron_.FirstFrom(local_days(days(0)))) {
      return Refuse("it never fires: none of the months that it names has such a day");
    }
    return cron_;
  }

 private:
  static Failure Refuse(const std::string& what) {
    return Fail(ErrorCode::Invalid, "this is no cron expression: " + what);
  }
  static Failure Refuse(std::size_t field, std::string_view item, const std::string& what) {
    return Refuse("field " + std::to_string(field + 1) + " (" + kFields[field].name + "): '" +
                  Excerpt(item, 40) + "' " + what);
  }

  static Result<std::string_view> MeaningOf(const std::vector<std::string_view>& fields) {
    const std::string_view word = fields[0];
    if (word == "@every") return Refuse("@every is a key of its own: write \"every\": \"5m\"");
    if (word == "@reboot") return Refuse("@reboot has no meaning where no single machine counts");
    const auto found = std::find_if(std::begin(kShorthands), std::end(kShorthands),
                                    [word](const CronWord& one) { return one.word == word; });
    if (found == std::end(kShorthands)) {
      std::vector<std::string> known;
      for (const CronWord& one : kShorthands) known.emplace_back(one.word);
      const std::string hint = DidYouMean(word, known);
      return Refuse("'" + Excerpt(word, 40) + "' is not known" +
                    (hint.empty() ? "; write @hourly, @daily, @weekly, @monthly or @yearly" : hint));
    }
    if (fields.size() > 1) return Refuse(std::string(word) + " stands for all fields: nothing follows it");
    return found->meaning;
  }

  // The value of a text that stands in an item.
  static Result<int> ReadValue(std::size_t field, std::string_view item, std::string_view text) {
    const CronField& rule = kFields[field];
    const std::string range = std::to_string(rule.least) + " to " + std::to_string(rule.most);
    const auto value = ValueOf(text, rule);
    if (!value) {
      if (text == "?") return Refuse(field, item, "is not known here: write *");
      if (text.empty()) return Refuse(field, item, "lacks a value: write " + range + ", or *");
      const std::string words = rule.names.empty() ? ""
                                                   : ", or " + std::string(rule.names.front()) + " to " +
                                                         std::string(rule.names.back());
      return Refuse(field, item, "is not a value: write " + range + words);
    }
    if (*value < rule.least || *value > rule.most) {
      return Refuse(field, item, "is out of range: write " + range);
    }
    return *value;
  }

  Status ReadItem(std::size_t field, std::string_view item) {
    const CronField& rule = kFields[field];
    if (field == kDay && Upper(item) == "L") {
      cron_.last_day_ = true;
      return {};
    }
    if (field == kWeekday && item.find('#') != std::string_view::npos) return ReadNth(item);
    if (field == kWeekday && item.size() > 1 && std::toupper(item.back()) == 'L') {
      BOOST_OUTCOME_TRY(weekday, ReadValue(field, item, item.substr(0, item.size() - 1)));
      cron_.of_month_[static_cast<std::size_t>(weekday % 7)].set(0);
      return {};
    }
    const std::size_t slash = item.find('/');
    const std::string_view range = item.substr(0, slash);
    const std::size_t dash = range.find('-');
    int first = rule.least;
    int last = field == kWeekday ? 6 : rule.most;
    if (range != "*") {
      BOOST_OUTCOME_TRY(from, ReadValue(field, item, range.substr(0, dash)));
      first = last = from;
      if (dash != std::string_view::npos) {
        BOOST_OUTCOME_TRY(to, ReadValue(field, item, range.substr(dash + 1)));
        last = to;
        if (field == kWeekday && last == 0 && first > 0) last = 7;  // SAT-SUN
        if (last < first) return Refuse(field, item, "goes backwards: write it as two ranges, with a comma");
      } else if (slash != std::string_view::npos) {
        return Refuse(field, item,
                      "has a step without a range: write " + std::string(range) + "-" +
                          std::to_string(rule.most) + std::string(item.substr(slash)));
      }
    }
    int step = 1;
    if (slash != std::string_view::npos) {
      const CronField steps{"step", 1, rule.most - rule.least + 1, {}};
      const auto value = ValueOf(item.substr(slash + 1), steps);
      if (!value || *value < 1 || *value > rule.most) {
        return Refuse(field, item,
                      "has no such step: write 1 to " + std::to_string(rule.most) + " behind the /");
      }
      step = *value;
    }
    for (int value = first; value <= last; value += step) Set(field, static_cast<std::size_t>(value));
    return {};
  }

  // MON#1
  Status ReadNth(std::string_view item) {
    const std::size_t hash = item.find('#');
    BOOST_OUTCOME_TRY(weekday, ReadValue(kWeekday, item, item.substr(0, hash)));
    const std::string_view number = item.substr(hash + 1);
    if (number.size() != 1 || number[0] < '1' || number[0] > '5') {
      return Refuse(kWeekday, item, "is not a week of the month: write 1 to 5 behind the #");
    }
    cron_.of_month_[static_cast<std::size_t>(weekday % 7)].set(static_cast<std::size_t>(number[0] - '0'));
    return {};
  }

  void Set(std::size_t field, std::size_t value) {
    switch (field) {
      case kMinute:
        cron_.minutes_.set(value);
        break;
      case kHour:
        cron_.hours_.set(value);
        break;
      case kDay:
        cron_.days_.set(value);
        break;
      case kMonth:
        cron_.months_.set(value);
        break;
      default:
        cron_.weekdays_.set(value % 7);
    }
  }

  Cron cron_;
};

Result<Cron> Cron::Parse(std::string_view text) { return CronReader().Read(text); }

bool Cron::Names(year_month_day date, std::chrono::weekday weekday) const {
  const unsigned day = static_cast<unsigned>(date.day());
  const unsigned last = static_cast<unsigned>((date.year() / date.month() / std::chrono::last).day());
  const std::bitset<6>& weeks = of_month_[weekday.c_encoding()];
  const bool by_day = days_[day] || (last_day_ && day == last);
  const bool by_weekday =
      weekdays_[weekday.c_encoding()] || weeks[(day + 6) / 7] || (weeks[0] && day + 7 > last);
  return names_days_ && names_weekdays_ ? by_day || by_weekday : by_day && by_weekday;
}

std::optional<LocalMinute> Cron::FirstFrom(LocalMinute from) const {
  local_days day = std::chrono::floor<days>(from);
  const local_days horizon = day + kCalendarRepeats;
  minutes time = from - day;
  while (day <= horizon) {
    const year_month_day date(day);
    if (!months_[static_cast<unsigned>(date.month())]) {
      day = local_days((date.year() / date.month() + std::chrono::months(1)) / 1);
    } else {
      if (Names(date, std::chrono::weekday(day))) {
        for (; time < days(1); time += minutes(1)) {
          const auto hour = std::chrono::floor<hours>(time);
          if (!hours_[static_cast<std::size_t>(hour.count())]) {
            time = hour + minutes(59);
          } else if (minutes_[static_cast<std::size_t>((time - hour).count())]) {
            return day + time;
          }
        }
      }
      day += days(1);
    }
    time = minutes(0);
  }
  return std::nullopt;
}

}  // namespace millrace::engine
