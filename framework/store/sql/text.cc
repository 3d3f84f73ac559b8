#include "framework/store/sql/text.h"

#include <algorithm>
#include <charconv>
#include <cstdio>

namespace millrace::engine::sql {
namespace {

using namespace std::chrono;

// Reads digits from `at` on; -1 if there is none.
int Digits(std::string_view text, std::size_t at, std::size_t count) {
  if (text.size() < at + count) return -1;
  int value = 0;
  for (const char c : text.substr(at, count)) {
    if (c < '0' || c > '9') return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

}  // namespace

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

std::string Shortest(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

std::string Repeat(std::string_view element, std::size_t times) {
  std::string out;
  out.reserve((element.size() + 1) * times);
  for (std::size_t i = 0; i < times; ++i) {
    if (i > 0) out += ',';
    out += element;
  }
  return out;
}

std::string InTuples(std::string_view tuple, std::size_t times) {
  return " IN ($tuples " + Repeat(tuple, times) + "$end)";
}

std::string TimeText(WallTime time) {
  constexpr WallTime kFirst = sys_days(year(1) / 1 / 1);
  constexpr WallTime kLast = sys_days(year(9999) / 12 / 31);
  time = std::clamp(time, kFirst, kLast);
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const auto of_day = hh_mm_ss(time - day);
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "%04d-%02u-%02u %02d:%02d:%02d.%06d", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(of_day.hours().count()), static_cast<int>(of_day.minutes().count()),
                static_cast<int>(of_day.seconds().count()), static_cast<int>(of_day.subseconds().count()));
  return buffer;
}

std::optional<WallTime> ParseTime(std::string_view text) {
  const int y = Digits(text, 0, 4), mo = Digits(text, 5, 2), d = Digits(text, 8, 2);
  const int h = Digits(text, 11, 2), mi = Digits(text, 14, 2), s = Digits(text, 17, 2);
  if (y < 0 || mo < 0 || d < 0 || h < 0 || mi < 0 || s < 0) return std::nullopt;
  const int fraction = text.size() >= 26 ? Digits(text, 20, 6) : 0;
  const auto date = year(y) / static_cast<unsigned>(mo) / static_cast<unsigned>(d);
  return WallTime(sys_days(date)) + hours(h) + minutes(mi) + seconds(s) +
         microseconds(fraction < 0 ? 0 : fraction);
}

}  // namespace millrace::engine::sql
