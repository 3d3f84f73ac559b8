#include "framework/store/mysql/sql_text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace millrace::engine::mysql {
namespace {

using namespace std::chrono;

// Reads digits from `at` on; -1 if there is none.
int Digits(std::string_view text, std::size_t at, std::size_t count) {
  if (text.size() < at + count) return -1;
  int value = -1;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + at + count, value);
  return error == std::errc() && end == text.data() + at + count ? value : -1;
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

std::string List(std::span<const std::uint64_t> ids) {
  std::string out;
  out.reserve(ids.size() * 9);
  char buffer[24];
  for (const std::uint64_t id : ids) {
    if (!out.empty()) out += ',';
    const auto result = std::to_chars(buffer, buffer + sizeof buffer, id);
    out.append(buffer, result.ptr);
  }
  return out;
}

std::vector<std::uint64_t> Sorted(std::span<const std::uint64_t> ids) {
  std::vector<std::uint64_t> sorted(ids.begin(), ids.end());
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  return sorted;
}

std::string TimeLiteral(WallTime time) {
  constexpr WallTime kFirst = sys_days(year(1000) / 1 / 1);
  constexpr WallTime kLast = sys_days(year(9999) / 12 / 31);
  time = std::clamp(time, kFirst, kLast);
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const auto of_day = hh_mm_ss(time - day);
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "'%04d-%02u-%02u %02d:%02d:%02d.%06d'", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(of_day.hours().count()), static_cast<int>(of_day.minutes().count()),
                static_cast<int>(of_day.seconds().count()), static_cast<int>(of_day.subseconds().count()));
  return buffer;
}

std::string After(Micros delay) {
  return "UTC_TIMESTAMP(6) + INTERVAL " + std::to_string(delay.count()) + " MICROSECOND";
}

std::optional<WallTime> ParseSqlTime(std::string_view text) {
  const int y = Digits(text, 0, 4), mo = Digits(text, 5, 2), d = Digits(text, 8, 2);
  const int h = Digits(text, 11, 2), mi = Digits(text, 14, 2), s = Digits(text, 17, 2);
  if (y < 0 || mo < 0 || d < 0 || h < 0 || mi < 0 || s < 0) return std::nullopt;
  const int fraction = text.size() >= 26 ? Digits(text, 20, 6) : 0;
  const auto date = year(y) / static_cast<unsigned>(mo) / static_cast<unsigned>(d);
  return WallTime(sys_days(date)) + hours(h) + minutes(mi) + seconds(s) +
         microseconds(fraction < 0 ? 0 : fraction);
}

}  // namespace millrace::engine::mysql
