#include "framework/schedule/cron.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using std::chrono::minutes;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

LocalMinute Local(std::string text) {
  text[10] = 'T';
  return LocalMinute(std::chrono::floor<minutes>(ParseTime(text + ":00Z").value()).time_since_epoch());
}

std::string Shown(LocalMinute local) {
  std::string text = FormatTime(WallTime(local.time_since_epoch())).substr(0, 16);
  text[10] = ' ';
  return text;
}

struct Known {
  const char* expression;
  std::string from;  // empty: the evening of Sunday, 2026-11-22
  std::string first;
};

// Each answer was given by two other implementations (python3-croniter, and a search minute by minute), but
// for `0 8 15 * 1#2`, which croniter does not answer.
const std::vector<Known> kKnown = {
    {"* * * * *", "", "2026-11-22 18:00"},
    {"*/5 * * * *", "2026-11-22 18:01", "2026-11-22 18:05"},
    {"*/15 * * * *", "2026-12-31 23:46", "2027-01-01 00:00"},
    {"0 * * * *", "", "2026-11-22 18:00"},
    {"59 * * * *", "2026-11-22 18:59", "2026-11-22 18:59"},
    {"0 2 * * *", "", "2026-11-23 02:00"},
    {"0 2 * * *", "2026-11-22 02:00", "2026-11-22 02:00"},
    {"0 2 * * *", "2026-11-22 02:01", "2026-11-23 02:00"},
    {"30 4 1,15 * *", "", "2026-12-01 04:30"},
    {"30 4 1,15 * *", "2026-12-01 04:31", "2026-12-15 04:30"},
    {"0 0 1 1 *", "", "2027-01-01 00:00"},
    {"0 0 29 2 *", "", "2028-02-29 00:00"},
    {"0 0 29 2 *", "2096-03-01 00:00", "2104-02-29 00:00"},
    {"0 0 31 * *", "", "2026-12-31 00:00"},
    {"0 0 31 * *", "2026-12-31 00:01", "2027-01-31 00:00"},
    {"0 0 30 * *", "2027-01-30 00:01", "2027-03-30 00:00"},
    {"0 0 31 1,3,5 *", "2027-01-31 00:01", "2027-03-31 00:00"},
    {"0 9 * * 1-5", "", "2026-11-23 09:00"},
    {"0 9 * * MON-FRI", "2026-11-20 09:01", "2026-11-23 09:00"},
    {"0 9 * * mon-fri", "2026-11-21 00:00", "2026-11-23 09:00"},
    {"0 9 * * 0", "", "2026-11-29 09:00"},
    {"0 9 * * 7", "", "2026-11-29 09:00"},
    {"0 9 * * SUN", "2026-11-23 00:00", "2026-11-29 09:00"},
    {"0 9 * * 5-7", "2026-11-23 00:00", "2026-11-27 09:00"},
    {"0 9 * * 6,0", "2026-11-23 00:00", "2026-11-28 09:00"},
    {"0 9 13 * 5", "", "2026-11-27 09:00"},
    {"0 9 13 * FRI", "2026-12-13 09:01", "2026-12-18 09:00"},
    {"0 0 1 * 1", "", "2026-11-23 00:00"},
    {"0 0 1 * 1", "2026-11-30 00:01", "2026-12-01 00:00"},
    {"0 0 1-7 * 1", "2026-12-08 00:00", "2026-12-14 00:00"},
    {"0 12 * 1-6 *", "", "2027-01-01 12:00"},
    {"0 12 * JAN,JUL *", "2027-02-01 00:00", "2027-07-01 12:00"},
    {"0 12 * jan-mar 3", "", "2027-01-06 12:00"},
    {"0 0 1 */3 *", "", "2027-01-01 00:00"},
    {"0 0 1 */3 *", "2027-01-01 00:01", "2027-04-01 00:00"},
    {"0 0 1 2-12/5 *", "", "2026-12-01 00:00"},
    {"*/20 9-17 * * *", "", "2026-11-23 09:00"},
    {"*/20 9-17 * * *", "2026-11-23 17:41", "2026-11-24 09:00"},
    {"5,35 8,20 * * *", "", "2026-11-22 20:05"},
    {"5,35 8,20 * * *", "2026-11-22 20:06", "2026-11-22 20:35"},
    {"5-10 * * * *", "", "2026-11-22 18:05"},
    {"5-10 * * * *", "2026-11-22 18:11", "2026-11-22 19:05"},
    {"10-50/20 * * * *", "", "2026-11-22 18:10"},
    {"10-50/20 * * * *", "2026-11-22 18:31", "2026-11-22 18:50"},
    {"10-50/20 * * * *", "2026-11-22 18:51", "2026-11-22 19:10"},
    {"0-59/30 * * * *", "2026-11-22 18:29", "2026-11-22 18:30"},
    {"*/7 * * * *", "2026-11-22 18:57", "2026-11-22 19:00"},
    {"*/40 * * * *", "2026-11-22 18:41", "2026-11-22 19:00"},
    {"0 */6 * * *", "", "2026-11-22 18:00"},
    {"0 */6 * * *", "2026-11-22 18:01", "2026-11-23 00:00"},
    {"0 */5 * * *", "2026-11-22 20:01", "2026-11-23 00:00"},
    {"0 1-23/2 * * *", "", "2026-11-22 19:00"},
    {"0 22-23,0-2 * * *", "", "2026-11-22 22:00"},
    {"0 22-23,0-2 * * *", "2026-11-23 02:01", "2026-11-23 22:00"},
    {"15 10 * * *", "2026-12-31 10:16", "2027-01-01 10:15"},
    {"0 0 * * 1", "2026-12-28 00:01", "2027-01-04 00:00"},
    {"0 0 */2 * *", "2026-11-30 00:00", "2026-12-01 00:00"},
    {"0 0 */2 * *", "2026-11-29 00:01", "2026-12-01 00:00"},
    {"0 0 */10 * *", "2026-11-22 00:00", "2026-12-01 00:00"},
    {"0 0 */10 * *", "2026-12-31 00:01", "2027-01-01 00:00"},
    {"0 0 2-31/2 * *", "2027-02-28 00:01", "2027-03-02 00:00"},
    {"0 0 28 2 *", "2028-02-28 00:01", "2029-02-28 00:00"},
    {"0 0 29 2,3 *", "2027-02-01 00:00", "2027-03-29 00:00"},
    {"0 0 30,31 2,4 *", "", "2027-04-30 00:00"},
    {"0 0 15 6 *", "", "2027-06-15 00:00"},
    {"23 0-20/2 * * *", "", "2026-11-22 18:23"},
    {"23 0-20/2 * * *", "2026-11-22 20:24", "2026-11-23 00:23"},
    {"5 4 * * sun", "2026-11-22 04:06", "2026-11-29 04:05"},
    {"0 22 * * 1-5", "2026-11-20 22:01", "2026-11-23 22:00"},
    {"0 0,12 1 */2 *", "", "2027-01-01 00:00"},
    {"0 4 8-14 * *", "", "2026-12-08 04:00"},
    {"0 4 8-14 * *", "2026-12-14 04:01", "2027-01-08 04:00"},
    {"1 0 * 12 *", "", "2026-12-01 00:01"},
    {"1 0 * 12 *", "2026-12-31 00:02", "2027-12-01 00:01"},
    {"0 0 24 12 *", "2026-12-24 00:00", "2026-12-24 00:00"},
    {"59 23 31 12 *", "", "2026-12-31 23:59"},
    {"59 23 31 12 5", "", "2026-12-04 23:59"},
    {"59 23 31 12 5", "2026-12-25 23:59", "2026-12-25 23:59"},
    {"0 6 * * TUE,THU", "", "2026-11-24 06:00"},
    {"0 6 * * 2,4", "2026-11-24 06:01", "2026-11-26 06:00"},
    {"0 6 * * 1-6/2", "", "2026-11-23 06:00"},
    {"0 6 * * 1-6/2", "2026-11-25 06:01", "2026-11-27 06:00"},
    {"30 7 * * *", "2028-02-28 07:31", "2028-02-29 07:30"},
    {"30 7 * * *", "2027-02-28 07:31", "2027-03-01 07:30"},
    {"30 7 * * *", "2100-02-28 07:31", "2100-03-01 07:30"},
    {"45 23 * * 6", "", "2026-11-28 23:45"},
    {"0 0 1 1 0", "", "2027-01-01 00:00"},
    {"0 0 1 1 0", "2027-01-01 00:01", "2027-01-03 00:00"},
    {"* 3 * * *", "", "2026-11-23 03:00"},
    {"* 3 * * *", "2026-11-22 03:59", "2026-11-22 03:59"},
    {"* 3 * * *", "2026-11-22 04:00", "2026-11-23 03:00"},
    {"* * 1 * *", "", "2026-12-01 00:00"},
    {"* * * 2 *", "", "2027-02-01 00:00"},
    {"* * * 2 *", "2027-02-28 23:59", "2027-02-28 23:59"},
    {"0 0 L * *", "", "2026-11-30 00:00"},
    {"0 0 L * *", "2027-02-01 00:00", "2027-02-28 00:00"},
    {"0 0 L * *", "2028-02-01 00:00", "2028-02-29 00:00"},
    {"0 0 L 2 *", "2028-02-29 00:01", "2029-02-28 00:00"},
    {"0 18 L * *", "2026-12-31 18:01", "2027-01-31 18:00"},
    {"0 8 * * MON#1", "", "2026-12-07 08:00"},
    {"0 8 * * 1#1", "2026-12-07 08:01", "2027-01-04 08:00"},
    {"0 8 * * 3#5", "", "2026-12-30 08:00"},
    {"0 8 * * FRI#3", "2026-11-20 08:01", "2026-12-18 08:00"},
    {"0 8 * * 5L", "", "2026-11-27 08:00"},
    {"0 8 * * 5L", "2026-11-27 08:01", "2026-12-25 08:00"},
    {"0 8 * 2 0L", "", "2027-02-28 08:00"},
    {"0 8 15 * 1#2", "", "2026-12-14 08:00"},
    {"0 8 L * 1", "", "2026-11-23 08:00"},
    {"@hourly", "2026-11-22 18:01", "2026-11-22 19:00"},
    {"@daily", "", "2026-11-23 00:00"},
    {"@midnight", "", "2026-11-23 00:00"},
    {"@weekly", "", "2026-11-29 00:00"},
    {"@weekly", "2026-11-22 00:00", "2026-11-22 00:00"},
    {"@monthly", "", "2026-12-01 00:00"},
    {"@yearly", "", "2027-01-01 00:00"},
    {"@annually", "2027-01-01 00:00", "2027-01-01 00:00"},
};

TEST(CronTest, AnswersWhatIsKnown) {
  for (const Known& known : kKnown) {
    const auto cron = Cron::Parse(known.expression);
    ASSERT_TRUE(cron) << known.expression << ": " << cron.error().message;
    const std::string from = known.from.empty() ? "2026-11-22 18:00" : known.from;
    const auto first = cron->FirstFrom(Local(from));
    ASSERT_TRUE(first) << known.expression;
    EXPECT_EQ(Shown(*first), known.first) << known.expression << " from " << from;
  }
  EXPECT_GE(kKnown.size(), 100U);
}

struct RefusedCron {
  const char* expression;
  const char* says;
};

TEST(CronTest, RefusesWithTheFieldAndWhatToWrite) {
  const RefusedCron kRefused[] = {
      {"", "it has 0 fields; write five: minute, hour, day of the month, month, day of the week"},
      {"0 2 * *", "it has 4 fields"},
      {"0 0 2 * * *", "(there are no seconds and no years)"},
      {"60 * * * *", "field 1 (minute): '60' is out of range: write 0 to 59"},
      {"-1 * * * *", "field 1 (minute): '-1' lacks a value: write 0 to 59, or *"},
      {"* 24 * * *", "field 2 (hour): '24' is out of range: write 0 to 23"},
      {"* * 0 * *", "field 3 (day of the month): '0' is out of range: write 1 to 31"},
      {"* * * 13 *", "field 4 (month): '13' is out of range"},
      {"* * * FEX *", "field 4 (month): 'FEX' is not a value: write 1 to 12, or JAN to DEC"},
      {"* * * * 8", "field 5 (day of the week): '8' is out of range: write 0 to 7"},
      {"* * * * ?", "is not known here: write *"},
      {"1,,2 * * * *", "'' lacks a value"},
      {"0 22-2 * * *", "'22-2' goes backwards: write it as two ranges"},
      {"0 0 * * FRI-MON", "'FRI-MON' goes backwards"},
      {"5/15 * * * *", "'5/15' has a step without a range: write 5-59/15"},
      {"*/0 * * * *", "has no such step: write 1 to 59"},
      {"*/60 * * * *", "has no such step: write 1 to 59"},
      {"*/x * * * *", "has no such step"},
      {"* * * * MON#6", "write 1 to 5 behind the #"},
      {"* * 15W * *", "'15W' is not a value"},
      {"* * LW * *", "'LW' is not a value"},
      {"* L * * *", "'L' is not a value"},
      {"@dayly", "'@dayly' is not known (did you mean '@daily'?)"},
      {"@sometimes", "write @hourly, @daily, @weekly, @monthly or @yearly"},
      {"@daily 3", "@daily stands for all fields"},
      {"@every 5m", "write \"every\": \"5m\""},
      {"@reboot", "no single machine counts"},
      {"1-2-3 * * * *", "'1-2-3' is not a value"},
      {"+1 * * * *", "'+1' is not a value"},
  };
  for (const RefusedCron& refused : kRefused) {
    const auto cron = Cron::Parse(refused.expression);
    ASSERT_FALSE(cron) << refused.expression;
    EXPECT_EQ(cron.error().code, ErrorCode::Invalid);
    EXPECT_THAT(cron.error().message,
                AllOf(StartsWith("this is no cron expression: "), HasSubstr(refused.says)))
        << refused.expression;
  }
  EXPECT_THAT(Cron::Parse(std::string(300, '1')).error().message, HasSubstr("longer than 256 bytes"));
}

TEST(CronTest, RefusesWhatNeverFires) {
  for (const char* never : {"0 0 30 2 *", "0 0 31 2 *", "0 0 31 4,6,9,11 *", "* * 30-31 FEB *"}) {
    const auto cron = Cron::Parse(never);
    ASSERT_FALSE(cron) << never;
    EXPECT_THAT(cron.error().message, HasSubstr("it never fires"));
  }
  EXPECT_TRUE(Cron::Parse("0 0 30 2 1")) << "every Monday of February";
}

TEST(CronTest, FindsTheRarestDays) {
  EXPECT_EQ(Shown(*Cron::Parse("0 0 29 2 *")->FirstFrom(Local("2096-02-29 00:01"))), "2104-02-29 00:00");
  EXPECT_EQ(Shown(*Cron::Parse("0 0 * 2 1#5")->FirstFrom(Local("2026-01-01 00:00"))), "2044-02-29 00:00");
}

TEST(CronTest, KnowsWhetherItNamesATimeOfDay) {
  EXPECT_TRUE(Cron::Parse("30 2 * * *")->NamesTimeOfDay());
  EXPECT_TRUE(Cron::Parse("0,30 1-3 * * *")->NamesTimeOfDay());
  EXPECT_FALSE(Cron::Parse("*/15 2 * * *")->NamesTimeOfDay());
  EXPECT_TRUE(Cron::Parse("*/15 2 * * *")->NamesHours());
  EXPECT_FALSE(Cron::Parse("0 */2 * * *")->NamesHours());
  EXPECT_FALSE(Cron::Parse("@hourly")->NamesHours());
}

TEST(CronTest, KeepsItsTextWithOneBlank) {
  EXPECT_EQ(Cron::Parse(" 0\t2  * * MON ")->text(), "0 2 * * MON");
  EXPECT_EQ(Cron::Parse("@daily")->text(), "@daily");
}

// An expression of random numbers for the first four fields, and what it means by sets.
struct Written {
  std::vector<int> minutes, hours, days, months;
  std::string text;
};

std::string List(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

std::vector<int> Some(int least, int most) {
  const auto size = *rc::gen::inRange<std::size_t>(1, 4);
  return *rc::gen::container<std::vector<int>>(size, rc::gen::inRange(least, most + 1));
}

RC_GTEST_PROP(CronPropertyTest, TheFirstMinuteIsNamedAndNoneBeforeItIs, ()) {
  const Written written{Some(0, 59), Some(0, 23), Some(1, 28), Some(1, 12)};
  const auto cron = Cron::Parse(List(written.minutes) + " " + List(written.hours) + " " + List(written.days) +
                                " " + List(written.months) + " *");
  RC_ASSERT(cron.has_value());
  const auto has = [](const std::vector<int>& set, long value) {
    return std::find(set.begin(), set.end(), value) != set.end();
  };
  const auto named = [&](LocalMinute at) {
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date(day);
    const std::chrono::hh_mm_ss time(at - day);
    return has(written.minutes, time.minutes().count()) && has(written.hours, time.hours().count()) &&
           has(written.days, static_cast<unsigned>(date.day())) &&
           has(written.months, static_cast<unsigned>(date.month()));
  };
  const LocalMinute from = Local("2026-01-01 00:00") + minutes(*rc::gen::inRange(0, 60 * 24 * 366));
  const auto first = cron->FirstFrom(from);
  RC_ASSERT(first.has_value());
  RC_ASSERT(*first >= from);
  RC_ASSERT(named(*first));
  for (int i = 0; i < 500; ++i) {
    const auto before = from + minutes(*rc::gen::inRange<long>(0, (*first - from).count() + 1));
    RC_ASSERT(before == *first || !named(before));
  }
}

}  // namespace
}  // namespace millrace::engine
