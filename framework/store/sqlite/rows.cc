#include "framework/store/sqlite/rows.h"

namespace millrace::engine::sqlite {
namespace {

int NumberAt(std::string_view text, std::size_t at, std::size_t digits) {
  int value = 0;
  for (std::size_t i = at; i < at + digits && i < text.size(); ++i) value = value * 10 + (text[i] - '0');
  return value;
}

}  // namespace

WallTime TimeOf(std::string_view text) {
  const std::chrono::year_month_day date{std::chrono::year(NumberAt(text, 0, 4)),
                                         std::chrono::month(static_cast<unsigned>(NumberAt(text, 5, 2))),
                                         std::chrono::day(static_cast<unsigned>(NumberAt(text, 8, 2)))};
  return WallTime(std::chrono::sys_days(date)) + std::chrono::hours(NumberAt(text, 11, 2)) +
         std::chrono::minutes(NumberAt(text, 14, 2)) + std::chrono::seconds(NumberAt(text, 17, 2)) +
         Micros(NumberAt(text, 20, 6));
}

std::optional<WallTime> TimeOrNone(std::string_view text) {
  if (text.empty()) return std::nullopt;
  return TimeOf(text);
}

}  // namespace millrace::engine::sqlite
