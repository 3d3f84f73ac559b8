#include "framework/config/schedule_config.h"

#include <algorithm>
#include <utility>

#include "framework/base/time_text.h"
#include "framework/config/parts.h"
#include "framework/store/query_check.h"
#include "framework/task/slice_name.h"
#include "framework/task/task.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr Micros kLeastPeriod = 1s;
constexpr Micros kLongestPeriod = std::chrono::hours(24 * 365);
constexpr std::size_t kLongestScheduleName = 64;
constexpr std::size_t kLongestShardName = 48;
constexpr std::size_t kLongestQuery = 16 * 1024;
constexpr const char* kRhythmKeys[] = {"cron", "every", "after", "at"};

// What a document says, before it is a value.
struct ScheduleTexts {
  std::string cron;
  std::string zone = "UTC";
  Micros every{};
  Micros after{};
  std::string at;
  std::string table;
  std::string key;
  // Which keys are there, well written or not: others mean something beside them only.
  bool has_cron = false;
  bool has_after = false;
  bool has_at = false;
  bool has_query = false;

  bool MeansZone() const { return has_cron || has_query; }
  bool MeansInitialDelay() const { return !has_at; }
  bool MeansCatchUp() const { return !has_after; }
  bool MeansOverlap() const { return !has_after && !has_at; }
};

// Reads or lists them, as Section and KeyLister do.
template <class Keys, class Texts, class Schedule>
void ScheduleKeys(Keys& keys, Texts& texts, Schedule& schedule) {
  keys.Text("cron", texts.cron, 256);
  keys.Duration("every", texts.every, kLeastPeriod, kLongestPeriod);
  keys.Duration("after", texts.after, kLeastPeriod, kLongestPeriod);
  keys.Text("at", texts.at, 40);
  keys.Text("handler", schedule.handler, kMaxHandlerName);
  keys.Text("shard", schedule.shard, kLongestShardName);
  keys.Text("table", texts.table, TableName::kMaxSize);
  keys.Text("from_query", schedule.from_query, kLongestQuery);
  keys.Text("key", texts.key, 256);
  keys.Flag("paused", schedule.rule.paused);
  if (!texts.has_query) keys.Object("params", schedule.params);
  if (texts.MeansZone()) keys.Text("zone", texts.zone, 64);
  if (texts.MeansInitialDelay()) {
    keys.Duration("initial_delay", schedule.rule.timing.initial_delay, Micros(0), kLongestPeriod);
  }
  if (texts.MeansCatchUp()) {
    keys.Choice("catch_up", schedule.rule.catch_up,
                {{"none", CatchUp::None}, {"one", CatchUp::One}, {"all", CatchUp::All}});
  }
  if (texts.MeansOverlap()) {
    keys.Choice("overlap", schedule.rule.overlap, {{"allow", Overlap::Allow}, {"skip", Overlap::Skip}});
  }
}

// A key that would have no effect is refused with its reason.
void RefuseVoidKeys(const ScheduleTexts& texts, Section& section) {
  const auto refuse = [&section](bool meant, const char* key, const char* why) {
    if (!meant && section.Child(key) != nullptr) section.Add(key, why);
  };
  refuse(!texts.has_query, "params", "a row of from_query brings its columns: leave the params out");
  refuse(texts.MeansZone(), "zone",
         "this says nothing of an interval or of a time, which has its zone: leave it out");
  refuse(texts.MeansInitialDelay(), "initial_delay",
         "a schedule with \"at\" has its time: leave the delay out");
  refuse(texts.MeansCatchUp(), "catch_up",
         "a schedule with \"after\" misses nothing, it fires late: leave the key out");
  refuse(texts.MeansOverlap(), "overlap",
         "this schedule has one task at a time by itself: leave the key out");
}

// Takes what `read` says of a text, or its error as that of the key.
template <class Value, class Taken>
void TakeRead(Section& section, const char* key, const Result<Value>& read, Taken& taken) {
  if (read) {
    taken = *read;
  } else {
    section.Add(key, read.error().message);
  }
}

void TakeZone(const ScheduleTexts& texts, Section& section, UnknownZones zones, ScheduleConfig& schedule) {
  const auto found = TimeZone::Find(texts.zone);
  if (!found && zones == UnknownZones::Contained) {
    schedule.fault = "zone: " + found.error().message;
  } else {
    TakeRead(section, "zone", found, schedule.rule.timing.zone);
  }
}

void TakeRhythm(const ScheduleTexts& texts, Section& section, Timing& timing) {
  if (!texts.cron.empty()) TakeRead(section, "cron", Cron::Parse(texts.cron), timing.rhythm);
  if (texts.every > Micros(0)) timing.rhythm = FixedRate{texts.every};
  if (texts.after > Micros(0)) timing.rhythm = FixedDelay{texts.after};
  if (texts.at.empty()) return;
  OneShot once;
  TakeRead(section, "at", ParseTime(texts.at), once.at);
  timing.rhythm = once;
}

void CheckRhythmKeys(const json& value, const KeyPath& path, Problems& problems) {
  std::string named;
  int count = 0;
  for (const char* key : kRhythmKeys) {
    if (!value.contains(key)) continue;
    named += (count++ == 0 ? "\"" : " and \"") + std::string(key) + '"';
  }
  if (count == 1) return;
  problems.Add(path,
               count == 0
                   ? "it never fires: write \"cron\": \"0 2 * * *\", \"every\": \"5m\", \"after\": \"5m\" or "
                     "\"at\": \"2026-12-01T02:00:00Z\""
                   : "it has " + named + ": leave one of them");
}

void CheckTask(const ScheduleTexts& texts, ScheduleConfig& schedule, Section& section) {
  if (!schedule.handler.empty() && !IsHandlerName(schedule.handler)) {
    section.Add("handler", "this is no task type: lower-case letters, digits, '_' and '.', a letter first");
  } else if (IsBuiltIn(schedule.handler)) {
    section.Add("handler", "the types millrace.… are the program's own: name another");
  }
  if (schedule.params.size() > kMaxParams) section.Add("params", "these are more than 64 KiB: shorten them");
  if (!schedule.shard.empty() && !IsShardName(schedule.shard)) {
    section.Add("shard", "a shard's name is made of lower-case letters, digits, '_' and '-', at most 48");
  }
  if (!texts.table.empty()) {
    schedule.table = ParseTableName(texts.table);
    if (!schedule.table) {
      section.Add("table",
                  "this is not a table name: lower-case letters, digits and '_', a letter first, at most 48");
    }
  }
}

void CheckFanOut(const json& value, const ScheduleTexts& texts, ScheduleConfig& schedule, Section& section) {
  if (value.contains("from_query") && !value.contains("key")) {
    section.Add("from_query",
                "its tasks need a key, so that none is submitted twice: write \"key\": "
                "\"{customer_id}-{month}\", with a column of yours");
  }
  if (value.contains("key") && !value.contains("from_query")) {
    section.Add("key",
                "this goes with \"from_query\", whose rows it tells apart: write the query, or leave it out");
  }
  if (!schedule.from_query.empty()) {
    if (const Status reads = CheckQuery(schedule.from_query); !reads)
      section.Add("from_query", reads.error().message);
  }
  if (!texts.key.empty()) TakeRead(section, "key", KeyTemplate::Parse(texts.key), schedule.key);
}

ScheduleConfig ReadSchedule(const json& value, const KeyPath& path, Problems& problems, UnknownZones zones) {
  ScheduleConfig schedule;
  ScheduleTexts texts;
  texts.has_cron = value.contains("cron");
  texts.has_after = value.contains("after");
  texts.has_at = value.contains("at");
  texts.has_query = value.contains("from_query");
  Section section(value, path, problems);
  ScheduleKeys(section, texts, schedule);
  RefuseVoidKeys(texts, section);
  if (value.is_object()) CheckRhythmKeys(value, path, problems);
  if (value.is_object() && !value.contains("handler")) {
    problems.Add(path, "it has no handler: write \"handler\": and a task type");
  }
  CheckTask(texts, schedule, section);
  CheckFanOut(value, texts, schedule, section);
  TakeZone(texts, section, zones, schedule);
  TakeRhythm(texts, section, schedule.rule.timing);
  section.Done();
  return schedule;
}

ScheduleTexts TextsOf(const ScheduleConfig& schedule) {
  const Timing& timing = schedule.rule.timing;
  ScheduleTexts texts;
  texts.zone = timing.zone.name();
  texts.has_cron = timing.Is<Cron>();
  texts.has_after = timing.Is<FixedDelay>();
  texts.has_at = timing.Is<OneShot>();
  texts.has_query = !schedule.from_query.empty();
  if (const auto* cron = std::get_if<Cron>(&timing.rhythm)) texts.cron = cron->text();
  if (const auto* rate = std::get_if<FixedRate>(&timing.rhythm)) texts.every = rate->period;
  if (const auto* delay = std::get_if<FixedDelay>(&timing.rhythm)) texts.after = delay->delay;
  if (const auto* once = std::get_if<OneShot>(&timing.rhythm)) texts.at = FormatTime(once->at);
  if (schedule.table) texts.table = schedule.table->text();
  if (schedule.key) texts.key = schedule.key->text();
  return texts;
}

}  // namespace

std::map<std::string, ScheduleConfig> ReadSchedules(const json& value, Problems& problems,
                                                    UnknownZones zones) {
  std::map<std::string, ScheduleConfig> schedules;
  Section section(value, {"schedules"}, problems);
  for (const auto& [name, schedule] : section.Every().items()) {
    const bool named = !name.empty() && name.size() <= kLongestScheduleName &&
                       name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-.") == std::string::npos;
    if (!named) {
      section.Add(name,
                  "a schedule's name is made of lower-case letters, digits, '_', '-' and '.', at most 64");
    }
    schedules[name] = ReadSchedule(schedule, section.Path(name), problems, zones);
  }
  return schedules;
}

void ListSchedule(const ScheduleConfig& schedule, KeyLister& keys) {
  const ScheduleTexts texts = TextsOf(schedule);
  ScheduleKeys(keys, texts, schedule);
}

}  // namespace millrace::engine
