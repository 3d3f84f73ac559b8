// Cron expressions: which minutes of a calendar one names. Pure; knows no time zone.
//
// Five fields, minute hour day-of-month month day-of-week, as crontab(5) of Vixie's cron has them: `*`,
// numbers, names (JAN, MON), ranges (1-5), steps (*/15, 10-50/20) and lists; or @hourly, @daily (@midnight),
// @weekly, @monthly, @yearly (@annually). Beyond it, as many have it: `L` for the last day of the month, `5L`
// for its last Friday, `MON#1` for its first Monday. Where both days are named, either will do; where one of
// the fields begins with `*`, both must fit.
#pragma once

#include <array>
#include <bitset>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/result.h"

namespace millrace::engine {

// A minute as a clock on the wall shows it, wherever the wall is.
using LocalMinute = std::chrono::local_time<std::chrono::minutes>;

class Cron {
 public:
  // Invalid with the field, what is wrong with it and what to write instead; so is an expression that never
  // fires, such as the 30th of February.
  static Result<Cron> Parse(std::string_view text);

  // The first minute named, not before `from`; nullopt: none within 400 years, after which the calendar
  // repeats itself.
  std::optional<LocalMinute> FirstFrom(LocalMinute from) const;

  // Does the field of the hours say which ones, or does it begin with `*`?
  bool NamesHours() const { return names_hours_; }
  // Do both minutes and hours say which ones? Then it is for a time of day; else it counts time, as */15
  // does.
  bool NamesTimeOfDay() const { return names_hours_ && names_minutes_; }

  // As it was written, with one blank between its fields.
  const std::string& text() const { return text_; }
  bool operator==(const Cron& other) const { return text_ == other.text_; }

 private:
  friend class CronReader;
  Cron() = default;
  bool Names(std::chrono::year_month_day date, std::chrono::weekday weekday) const;

  std::string text_;
  std::bitset<60> minutes_;
  std::bitset<24> hours_;
  std::bitset<32> days_;
  std::bitset<13> months_;
  std::bitset<7> weekdays_;
  std::array<std::bitset<6>, 7> of_month_;  // of each weekday: its first to fifth; at 0: its last
  bool last_day_ = false;
  bool names_minutes_ = false;
  bool names_hours_ = false;
  bool names_days_ = false;
  bool names_weekdays_ = false;
};

}  // namespace millrace::engine
