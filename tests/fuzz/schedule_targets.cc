#include <nlohmann/json.hpp>

#include "framework/config/parts.h"
#include "framework/config/position_map.h"
#include "framework/schedule/cron.h"
#include "framework/schedule/key_template.h"
#include "framework/schedule/timing.h"
#include "framework/task/task.h"
#include "tests/fuzz/target.h"

namespace millrace::engine::fuzz {
namespace {

using nlohmann::json;

constexpr WallTime kStart = std::chrono::sys_days(std::chrono::year(2026) / 3 / 1);

void CronExpressions(std::string_view input) {
  const auto cron = Cron::Parse(input);
  if (!cron) return RequireRefusal(cron);
  const auto again = Cron::Parse(cron->text());
  Require(again && *again == *cron, "an expression reads back as it was");
  for (const char* name : {"UTC", "Europe/Berlin"}) {
    const Timing timing{*cron, TimeZone::Find(name).value()};
    WallTime last = kStart;
    for (int i = 0; i < 10; ++i) {
      const auto next = NextFiring(timing, WallTime(), last);
      Require(next.has_value(), "what was accepted goes on firing");
      Require(*next > last, "each firing is later than the last");
      last = *next;
    }
    Require(LastFiring(timing, WallTime(), *NextFiring(timing, WallTime(), kStart), last) == last,
            "the last firing is found");
  }
}

void Zones(std::string_view input) {
  const auto zone = TimeZone::Find(input);
  if (!zone) return RequireRefusal(zone);
  Require(zone->name() == input, "a zone is known by its name");
  const TimeZone::Span span = zone->SpanAt(std::chrono::floor<std::chrono::seconds>(kStart));
  Require(span.begin <= kStart && kStart < span.end, "a time lies within its span");
}

void Keys(std::string_view input) {
  const auto key = KeyTemplate::Parse(input);
  if (!key) return RequireRefusal(key);
  Require(!key->columns().empty(), "a key tells rows apart");
  std::map<std::string, std::string> row;
  for (const std::string& column : key->columns()) row[column] = "7";
  const auto filled = key->KeyOf(row, kStart, {});
  if (!filled) return RequireRefusal(filled);
  Require(!filled->empty() && filled->size() <= kMaxKey, "a key may be a task's");
}

void Schedules(std::string_view input) {
  const PositionMap positions = PositionMap::Read(input);
  if (!positions.problems().empty()) return;
  const json value = json::parse(input.begin(), input.end(), nullptr, false, true);
  if (value.is_discarded()) return;
  Problems problems(positions, "fuzz.json");
  const auto schedules = ReadSchedules(value, problems);
  if (!problems.empty())
    return Require(problems.Text().starts_with("fuzz.json:"), "a refusal names the file");
  json written = json::object();
  for (const auto& [name, schedule] : schedules) {
    KeyLister keys;
    ListSchedule(schedule, keys);
    written[name] = keys.values();
  }
  Problems none(positions, "again.json");
  const auto again = ReadSchedules(written, none);
  Require(none.empty(), "what was accepted is accepted as it is written");
  Require(again == schedules, "and means the same");
}

}  // namespace

std::vector<Target> ScheduleTargets() {
  return {
      {"cron",
       CronExpressions,
       {"*/15 2 * * MON-FRI", "0,30 1-3 1,L JAN,JUL *", "0 8 * * MON#1,5L", "0 0 29 2 *", "@daily"},
       {"*/", "-", ",", "#", "L", "SUN", "JAN", " * ", "@hourly", "59", "31"}},
      {"time_zone",
       Zones,
       {"Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+12", "EST5EDT", "UTC"},
       {"/", "..", "right/", "posix/", "America/", "Etc/GMT-"}},
      {"task_key",
       Keys,
       {"bill-{customer_id}-{month}", "{id}/{day}", "{a}:{b}:{hour}"},
       {"{", "}", "{month}", "{id}", "}{"}},
      {"schedules",
       Schedules,
       {R"({"nightly":{"cron":"0 2 * * *","zone":"Europe/Berlin","handler":"noop","params":{"a":[1]},"catch_up":"none",)"
        R"("overlap":"skip","initial_delay":"5m","paused":true,"shard":"main","table":"tasks"}})",
        R"({"bill":{"every":"1d","handler":"x","from_query":"SELECT id FROM c","key":"{id}-{day}"}})",
        R"({"a":{"at":"2026-12-01T02:00:00Z","handler":"x"},"b":{"after":"1h30m","handler":"y"}})"},
       {"\"cron\":", "\"every\":", "\"after\":", "\"at\":", "\"zone\":", "\"key\":", "\"@daily\"", "\"1s\"",
        "\"handler\":", "true", "{}"}},
  };
}

}  // namespace millrace::engine::fuzz
