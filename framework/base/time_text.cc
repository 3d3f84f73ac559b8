#include "framework/base/time_text.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include "framework/base/utf8.h"

namespace millrace::engine {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

// Reads exactly `digits` digits at the front of `text` into `value` and takes them off.
bool TakeNumber(std::string_view& text, std::size_t digits, int& value) {
  if (text.size() < digits) return false;
  value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return false;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return true;
}

bool Take(std::string_view& text, char expected) {
  if (text.empty() || text[0] != expected) return false;
  text.remove_prefix(1);
  return true;
}

// A fraction of a second after the dot, up to nine digits; those beyond a microsecond are dropped.
bool TakeFraction(std::string_view& text, Micros& fraction) {
  std::int64_t value = 0;
  std::size_t count = 0;
  while (count < text.size() && text[count] >= '0' && text[count] <= '9' && count < 9) {
    if (count < 6) value = value * 10 + (text[count] - '0');
    ++count;
  }
  for (std::size_t i = count; i < 6; ++i) value *= 10;
  text.remove_prefix(count);
  fraction = Micros(value);
  return count > 0;
}

bool TakeZone(std::string_view& text, minutes& offset) {
  if (Take(text, 'Z') || Take(text, 'z')) {
    offset = minutes(0);
    return true;
  }
  const bool negative = !text.empty() && text[0] == '-';
  if (!Take(text, '+') && !Take(text, '-')) return false;
  int hour = 0;
  int minute = 0;
  if (!TakeNumber(text, 2, hour) || !Take(text, ':') || !TakeNumber(text, 2, minute)) return false;
  if (hour > 23 || minute > 59) return false;
  offset = minutes((hour * 60 + minute) * (negative ? -1 : 1));
  return true;
}

struct Unit {
  std::string_view name;
  std::int64_t micros;
};
// Longest names first where one begins another.
constexpr Unit kUnits[] = {{"us", 1},         {"ms", 1'000},        {"s", 1'000'000},
                           {"m", 60'000'000}, {"h", 3'600'000'000}, {"d", 86'400'000'000}};

}  // namespace

Result<WallTime> ParseTime(std::string_view text) {
  const std::string_view whole = text;
  const auto bad = [&](const char* why) {
    return Fail(ErrorCode::Invalid, "'" + Excerpt(whole) + "' is not a time: " + why +
                                        "; write it as 2026-11-20T18:00:00Z or 2026-11-20T20:00:00+02:00");
  };
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
  if (!TakeNumber(text, 4, year) || !Take(text, '-') || !TakeNumber(text, 2, month) || !Take(text, '-') ||
      !TakeNumber(text, 2, day)) {
    return bad("it does not begin with a date");
  }
  if (!(Take(text, 'T') || Take(text, 't') || Take(text, ' ')) || !TakeNumber(text, 2, hour) ||
      !Take(text, ':') || !TakeNumber(text, 2, minute) || !Take(text, ':') || !TakeNumber(text, 2, second)) {
    return bad("the time of day is missing or malformed");
  }
  Micros fraction{0};
  if (Take(text, '.') && !TakeFraction(text, fraction)) return bad("digits must follow the dot");
  minutes offset{0};
  if (!TakeZone(text, offset)) return bad("it has no time zone");
  if (!text.empty()) return bad("something follows the time zone");
  const std::chrono::year_month_day date{std::chrono::year(year),
                                         std::chrono::month(static_cast<unsigned>(month)),
                                         std::chrono::day(static_cast<unsigned>(day))};
  if (!date.ok() || hour > 23 || minute > 59 || second > 60)
    return bad("there is no such date or time of day");
  return WallTime(std::chrono::sys_days(date)) + hours(hour) + minutes(minute) + seconds(second) + fraction -
         offset;
}

std::string FormatTime(WallTime time) {
  const auto day = std::chrono::floor<days>(time);
  const std::chrono::year_month_day date(day);
  const auto of_day = std::chrono::hh_mm_ss(time - day);
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%04d-%02u-%02uT%02d:%02d:%02d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(of_day.hours().count()), static_cast<int>(of_day.minutes().count()),
                static_cast<int>(of_day.seconds().count()));
  std::string text = buffer;
  if (const auto fraction = of_day.subseconds().count(); fraction != 0) {
    std::snprintf(buffer, sizeof buffer, ".%06d", static_cast<int>(fraction));
    text += buffer;
    while (text.back() == '0') text.pop_back();
  }
  return text + 'Z';
}

Result<Micros> ParseDuration(std::string_view text) {
  const auto bad = [whole = std::string(text)] {
    return Fail(ErrorCode::Invalid,
                "'" + Excerpt(whole) + "' is not a duration; write it as 200ms, 5m, 1h30m or 7d");
  };
  if (text.empty()) return bad();
  double total = 0;
  while (!text.empty()) {
    double number = 0;
    const char* begin = text.data();
    if (*begin < '0' || *begin > '9') return bad();
    const auto [end, error] = std::from_chars(begin, begin + text.size(), number, std::chars_format::fixed);
    if (error != std::errc()) return bad();
    text.remove_prefix(static_cast<std::size_t>(end - begin));
    const Unit* found = nullptr;
    for (const Unit& unit : kUnits) {
      if (text.starts_with(unit.name)) {
        found = &unit;
        break;
      }
    }
    if (found == nullptr) return bad();
    text.remove_prefix(found->name.size());
    total += number * static_cast<double>(found->micros);
  }
  if (total > 1e15) return bad();  // beyond thirty years it is a mistake
  return Micros(std::llround(total));
}

std::string FormatDuration(Micros duration) {
  std::int64_t rest = duration.count();
  if (rest == 0) return "0s";
  std::string text;
  for (const std::string_view name : {"d", "h", "m", "s", "ms", "us"}) {
    for (const Unit& unit : kUnits) {
      if (unit.name != name || rest < unit.micros) continue;
      text += std::to_string(rest / unit.micros);
      text += name;
      rest %= unit.micros;
    }
  }
  return text;
}

}  // namespace millrace::engine
