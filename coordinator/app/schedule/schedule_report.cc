#include "coordinator/app/schedule/schedule_report.h"

#include <algorithm>
#include <cstdio>

#include "coordinator/app/cli/text.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;
using std::chrono::days;
using std::chrono::seconds;
using std::chrono::sys_seconds;

const Timing& TimingOf(const ScheduleFacts& schedule) { return schedule.config.rule.timing; }

const char* KindOf(const Timing& timing) {
  if (timing.Is<Cron>()) return "cron";
  if (timing.Is<FixedRate>()) return "every";
  return timing.Is<FixedDelay>() ? "after" : "at";
}

// The row is of this rhythm: nobody has looked at one whose rule was changed a moment ago.
bool GoesOn(const ScheduleFacts& schedule) {
  return schedule.row && schedule.row->state.rhythm == RhythmText(TimingOf(schedule));
}

std::string TimeOfDay(sys_seconds at, seconds offset) {
  const auto local = at + offset;
  const std::chrono::hh_mm_ss of_day(local - std::chrono::floor<days>(local));
  char text[32];
  std::snprintf(text, sizeof text, "%02ld:%02ld", static_cast<long>(of_day.hours().count()),
                static_cast<long>(of_day.minutes().count()));
  return text;
}

// The day of `at`, by either clock, is that of the change.
bool SameDay(sys_seconds at, seconds offset, sys_seconds change, seconds before, seconds after) {
  const auto day = std::chrono::floor<days>(at + offset);
  return day == std::chrono::floor<days>(change + before) || day == std::chrono::floor<days>(change + after);
}

// The change of the clock on the firing's day, if there is one.
std::string ClockChangeOn(WallTime firing, const TimeZone& zone) {
  const auto at = std::chrono::floor<seconds>(firing);
  const TimeZone::Span span = zone.SpanAt(at);
  const TimeZone::Span before = zone.SpanAt(span.begin - seconds(1));
  const TimeZone::Span after = zone.SpanAt(span.end);
  const auto words = [](sys_seconds change, seconds from, seconds to) {
    return "the clock goes from " + TimeOfDay(change, from) + (to < from ? " back to " : " to ") +
           TimeOfDay(change, to);
  };
  if (before.end == span.begin && before.offset != span.offset &&
      SameDay(at, span.offset, span.begin, before.offset, span.offset))
    return words(span.begin, before.offset, span.offset);
  if (after.begin == span.end && after.offset != span.offset &&
      SameDay(at, span.offset, span.end, span.offset, after.offset))
    return words(span.end, span.offset, after.offset);
  return "";
}

// The row of its shard, or one that is to be moved there.
void FindRow(const std::map<std::string, ShardScheduleFacts>& shards, ScheduleFacts& facts) {
  for (const auto& [shard, told] : shards) {
    const auto row = std::find_if(told.rows.begin(), told.rows.end(), [&](const ScheduleRow& one) {
      return one.name == facts.name && one.moved_to.empty();
    });
    if (row == told.rows.end() || (facts.row && shard != facts.shard)) continue;
    facts.row = *row;
    facts.row_shard = shard;
  }
}

// It stays where it began, wherever its schedule is moved to.
void FindFanOut(const std::map<std::string, ShardScheduleFacts>& shards, ScheduleFacts& facts) {
  for (const auto& [shard, told] : shards) {
    const auto ended = told.ended.find(facts.name);
    const bool newer =
        ended != told.ended.end() && (!facts.last_ended || facts.last_ended->firing < ended->second.firing);
    if (newer) facts.last_ended = ended->second;
    for (const FanOut& one : told.fan_outs) {
      if (one.schedule != facts.name || (facts.under_way && facts.under_way->firing <= one.firing)) continue;
      facts.under_way = one;
    }
  }
}

std::string PlaceTrouble(const std::map<std::string, ShardScheduleFacts>& shards,
                         const ScheduleFacts& facts) {
  const auto home = shards.find(facts.shard);
  if (home == shards.end()) {
    std::vector<std::string> names;
    for (const auto& [known, told] : shards) names.push_back(known);
    return "there is no shard '" + facts.shard + "'" + NearestOf(facts.shard, names, "; there are ", 8);
  }
  const auto& tables = home->second.tables;
  if (home->second.away || !facts.config.table) return "";
  const std::string table(facts.config.table->text());
  if (tables.contains(table)) return "";
  return "shard " + facts.shard + " has no task table '" + table + "'" +
         NearestOf(table, {tables.begin(), tables.end()}, "; there are ", 8);
}

std::string TaskText(const ScheduleFacts& schedule) {
  const bool known = schedule.row && schedule.row->task && schedule.row->task->id > 0;
  return known ? ToString(TaskName{schedule.row_shard, *schedule.row->task}) : "";
}

std::string UnderWayText(const ScheduleFacts& schedule) {
  if (!schedule.under_way) return "";
  const FanOut& one = *schedule.under_way;
  return "the fan-out of " + FormatLocal(one.firing, TimingOf(schedule).zone) + ": " +
         Count(one.submitted, "task", "tasks") + " so far" +
         (one.refused > 0 ? ", " + Count(one.refused, "row", "rows") + " refused" : "");
}

// A page takes seconds. Why it is so only its process knows: as likely as not its query fails.
std::string FanOutTrouble(const ScheduleFacts& schedule) {
  constexpr Micros kLongestFirstPage = std::chrono::minutes(3);
  const auto& one = schedule.under_way;
  if (!one || one->submitted + one->refused > 0 || schedule.now - one->begun < kLongestFirstPage) return "";
  return "the fan-out of " + FormatLocal(one->firing, TimingOf(schedule).zone) +
         " has submitted nothing in " + ElapsedText(schedule.now - one->begun) +
         ": millrace cluster status, or the log of the process that carries it on, says why";
}

std::string LastEndedText(const ScheduleFacts& schedule) {
  if (!schedule.last_ended) return "";
  const EndedFanOut& one = *schedule.last_ended;
  return "that of " + FormatLocal(one.firing, TimingOf(schedule).zone) + ": " +
         Count(one.submitted, "task", "tasks") + " submitted, " + Count(one.refused, "row", "rows") +
         " refused" +
         (one.taken > 0 ? ", " + Count(one.taken, "key", "keys") + " taken already" : std::string());
}

// Not where somebody has run it twice in a month.
std::string KeyTrouble(const ScheduleFacts& schedule, const Config& config) {
  const auto& last = schedule.last_ended;
  if (!last || last->submitted > 0 || last->taken == 0) return "";
  const std::string other = SharesKeysWith(schedule.name, config);
  if (other.empty()) return "";
  return "the fan-out of " + FormatLocal(last->firing, TimingOf(schedule).zone) +
         " has submitted nothing, since all its keys were taken: schedule " + other +
         " has the same handler and key; give one of them a key of its own";
}

// A one-shot that does nothing more; empty: it is none, or its time is to come.
std::string OverText(const ScheduleFacts& schedule) {
  const auto* once = std::get_if<OneShot>(&TimingOf(schedule).rhythm);
  if (once == nullptr || !schedule.unknown.empty() || !ComingFirings(schedule, 1).empty()) return "";
  return schedule.row && schedule.row->state.last ? "over" : "its time has passed: it never fires";
}

std::string NextText(const ScheduleFacts& schedule) {
  if (!schedule.unknown.empty()) return "unknown";
  const auto coming = ComingFirings(schedule, 1);
  if (!coming.empty()) return FormatLocal(coming.front().at, TimingOf(schedule).zone);
  const bool runs = schedule.row && !schedule.row->state.next;
  if (TimingOf(schedule).Is<FixedDelay>())
    return schedule.config.rule.paused && !runs ? "once it is resumed" : "when its task has ended";
  return "never again";
}

std::vector<std::string> TroubleTexts(const ScheduleFacts& schedule) {
  std::vector<std::string> texts;
  for (const ScheduleTrouble& trouble : schedule.troubles) texts.push_back(trouble.what);
  return texts;
}

std::string StateText(const ScheduleFacts& schedule) {
  const std::string paused = schedule.config.rule.paused ? "paused" : "";
  if (!schedule.troubles.empty())
    return (paused.empty() ? "" : paused + "; ") + Joined(TroubleTexts(schedule), "; ");
  if (!paused.empty()) return paused;
  if (!schedule.unknown.empty()) return "unknown";
  if (const std::string over = OverText(schedule); !over.empty()) return over;
  return schedule.row ? "good" : "not begun yet";
}

Ink InkOfState(const std::string& cell) {
  if (cell == "good") return Ink::Good;
  if (cell == "over") return Ink::Quiet;
  return cell == "paused" || cell == "unknown" || cell == "not begun yet" ? Ink::Caution : Ink::Bad;
}

// Both as the configuration has them; null where they mean nothing.
ordered_json CatchUpWord(const ScheduleRule& rule) {
  if (rule.timing.Is<FixedDelay>()) return nullptr;
  return rule.catch_up == CatchUp::None ? "none" : rule.catch_up == CatchUp::One ? "one" : "all";
}
ordered_json OverlapWord(const ScheduleRule& rule) {
  if (!rule.timing.Is<Cron>() && !rule.timing.Is<FixedRate>()) return nullptr;
  return rule.overlap == Overlap::Skip ? "skip" : "allow";
}

ordered_json OrNull(const std::string& text) { return text.empty() ? ordered_json() : ordered_json(text); }
ordered_json OrNull(const std::optional<WallTime>& time) {
  return time ? ordered_json(FormatTime(*time)) : ordered_json();
}

}  // namespace

std::string HandlerTrouble(const std::string& type, const Config& config, const KnownHandlers& handlers) {
  const std::string server = config.HandlerFor(type).ServedBy(type);
  if (!handlers || handlers->contains(server) || handlers->contains(type)) return "";
  return "nobody has the handler '" + server + "'" +
         NearestOf(server, {handlers->begin(), handlers->end()}, "; there are ", 8);
}

std::string SharesKeysWith(const std::string& name, const Config& config) {
  const auto own = config.schedules.find(name);
  if (own == config.schedules.end() || !own->second.key) return "";
  for (const auto& [other, schedule] : config.schedules) {
    if (other != name && schedule.key && schedule.handler == own->second.handler &&
        schedule.shard == own->second.shard && schedule.key->text() == own->second.key->text())
      return other;
  }
  return "";
}

std::vector<ScheduleFacts> FactsOf(const Config& config,
                                   const std::map<std::string, ShardScheduleFacts>& shards,
                                   const KnownHandlers& handlers, WallTime now) {
  std::vector<ScheduleFacts> all;
  for (const auto& [name, own] : config.schedules) {
    ScheduleFacts facts{.name = name, .config = own, .now = now, .shard = own.shard};
    if (own.shard.empty() && !shards.empty()) facts.shard = shards.begin()->first;
    const auto home = shards.find(facts.shard);
    FindRow(shards, facts);
    FindFanOut(shards, facts);
    if (home != shards.end() && !home->second.away) facts.now = home->second.now;
    if (home != shards.end() && home->second.away && !facts.row) facts.unknown = home->second.away->message;
    if (std::string nobody = HandlerTrouble(own.handler, config, handlers); !nobody.empty())
      facts.troubles.push_back({"handler", std::move(nobody)});
    if (std::string nowhere = PlaceTrouble(shards, facts); !nowhere.empty())
      facts.troubles.push_back({"place", std::move(nowhere)});
    const auto late = facts.row && !own.rule.paused ? LateBy(facts.row->state, facts.now) : std::nullopt;
    if (late) {
      facts.troubles.push_back(
          {"late", "it is " + ElapsedText(*late) +
                       " late: neither a leader, nor a worker without a cluster, looks at its shard"});
    }
    if (std::string stands = FanOutTrouble(facts); !stands.empty())
      facts.troubles.push_back({"fan_out", std::move(stands)});
    if (std::string taken = KeyTrouble(facts, config); !taken.empty())
      facts.troubles.push_back({"key", std::move(taken)});
    all.push_back(std::move(facts));
  }
  return all;
}

std::string RhythmWords(const Timing& timing) {
  if (const auto* cron = std::get_if<Cron>(&timing.rhythm)) return "cron " + cron->text();
  if (const auto* rate = std::get_if<FixedRate>(&timing.rhythm))
    return "every " + FormatDuration(rate->period);
  if (const auto* delay = std::get_if<FixedDelay>(&timing.rhythm))
    return FormatDuration(delay->delay) + " after the last has ended";
  return "once";
}

std::vector<ComingFiring> ComingFirings(const ScheduleFacts& schedule, std::size_t count) {
  const Timing& timing = TimingOf(schedule);
  WallTime anchor = schedule.now + timing.initial_delay;
  std::optional<WallTime> next;
  if (GoesOn(schedule)) {
    anchor = schedule.row->state.anchor;
    next = schedule.row->state.next;
  } else if (!(schedule.row && timing.Is<FixedDelay>())) {
    next = NextFiring(timing, anchor, schedule.now - Micros(1));
  }
  // What comes due in a pause lapses; but a fixed delay fires once it is over, whenever that is.
  const bool lapses = schedule.config.rule.paused && next && *next <= schedule.now;
  if (lapses) next = timing.Is<FixedDelay>() ? std::nullopt : NextFiring(timing, anchor, schedule.now);
  std::vector<ComingFiring> firings;
  for (; next && firings.size() < count; next = NextFiring(timing, anchor, *next))
    firings.push_back({*next, ClockChangeOn(*next, timing.zone)});
  return firings;
}

TextTable FiringTable(const ScheduleFacts& schedule, const std::vector<ComingFiring>& firings) {
  TextTable table{{{"next, " + TimingOf(schedule).zone.name()}, {"UTC"}, {"when"}, {"that day"}}, {}};
  for (const ComingFiring& firing : firings) {
    table.rows.push_back({FormatLocal(firing.at, TimingOf(schedule).zone), FormatTime(firing.at),
                          Relative(firing.at, schedule.now), firing.clock_change});
  }
  return table;
}

ordered_json ToJson(const ScheduleFacts& schedule, const std::vector<ComingFiring>& firings) {
  ordered_json all = ordered_json::array();
  for (const ComingFiring& firing : firings) {
    all.push_back({{"at", FormatTime(firing.at)},
                   {"local", FormatLocal(firing.at, TimingOf(schedule).zone)},
                   {"clock_change", OrNull(firing.clock_change)}});
  }
  return all;
}

TextTable ListTable(const std::vector<ScheduleFacts>& schedules) {
  TextTable table{{{"schedule"},
                   {"rhythm"},
                   {"zone", false, 2},
                   {"next"},
                   {"when"},
                   {"last", false, 1},
                   {"fired", true, 3},
                   {"lapsed", true, 4},
                   {"state", false, 0, InkOfState}},
                  {}};
  for (const ScheduleFacts& schedule : schedules) {
    const auto coming = ComingFirings(schedule, 1);
    const bool known = schedule.unknown.empty();
    const auto& row = schedule.row;
    const auto& last = row ? row->state.last : std::nullopt;
    table.rows.push_back({schedule.name, RhythmWords(TimingOf(schedule)), TimingOf(schedule).zone.name(),
                          NextText(schedule),
                          known && !coming.empty() ? Relative(coming.front().at, schedule.now) : "",
                          !known  ? "unknown"
                          : !last ? ""
                                  : FormatLocal(*last, TimingOf(schedule).zone),
                          row     ? WithCommas(row->fired)
                          : known ? "0"
                                  : "unknown",
                          row     ? WithCommas(row->lapsed)
                          : known ? "0"
                                  : "unknown",
                          StateText(schedule)});
  }
  return table;
}

std::string DetailText(const ScheduleFacts& schedule) {
  const ScheduleConfig& config = schedule.config;
  const auto& row = schedule.row;
  const auto& last = row ? row->state.last : std::nullopt;
  const std::string zone = TimingOf(schedule).zone.name();
  const std::string table = config.table ? "table " + *config.table : "its first table";
  const bool missed = TimingOf(schedule).Is<FixedDelay>();
  return FieldText(
      {{"schedule", schedule.name},
       {"rhythm",
        RhythmWords(TimingOf(schedule)) + (TimingOf(schedule).Is<Cron>() ? ", by the clock of " + zone : "")},
       {"state", StateText(schedule)},
       {"why unknown", schedule.unknown},
       {"handler", config.handler},
       {"params", config.from_query.empty() ? config.params : "", true},
       {"query", config.from_query},
       {"key", config.key ? config.key->text() : std::string()},
       {"place", schedule.shard.empty() ? "" : "shard " + schedule.shard + ", " + table},
       {"missed firings", missed                                  ? ""
                          : config.rule.catch_up == CatchUp::None ? "lapse"
                          : config.rule.catch_up == CatchUp::One  ? "the last is made up"
                                                                  : "each is made up"},
       {"overlap", config.rule.overlap == Overlap::Skip
                       ? "it waits while its last task is in work: what comes due lapses"
                       : ""},
       {"last",
        last ? FormatLocal(*last, TimingOf(schedule).zone) + ", " + Relative(*last, schedule.now) : ""},
       {"last task", TaskText(schedule)},
       {"under way", UnderWayText(schedule)},
       {"last fan-out", LastEndedText(schedule)},
       {"fired", row ? WithCommas(row->fired) : ""},
       {"lapsed", row ? WithCommas(row->lapsed) : ""}});
}

ordered_json ToJson(const ScheduleFacts& schedule) {
  const ScheduleConfig& config = schedule.config;
  const auto& row = schedule.row;
  const auto coming = ComingFirings(schedule, 1);
  const bool known = schedule.unknown.empty();
  ordered_json out{{"schedule", schedule.name},
                   {"kind", KindOf(TimingOf(schedule))},
                   {"rhythm", RhythmText(TimingOf(schedule))},
                   {"zone", TimingOf(schedule).zone.name()},
                   {"handler", config.handler},
                   {"shard", OrNull(schedule.shard)},
                   {"table", OrNull(config.table ? std::string(config.table->text()) : std::string())},
                   {"fan_out", !config.from_query.empty()},
                   {"params", config.from_query.empty() ? ordered_json::parse(config.params, nullptr, false)
                                                        : ordered_json()},
                   {"from_query", OrNull(config.from_query)},
                   {"key", OrNull(config.key ? config.key->text() : std::string())},
                   {"catch_up", CatchUpWord(config.rule)},
                   {"overlap", OverlapWord(config.rule)},
                   {"paused", config.rule.paused},
                   {"row", !known ? "unknown"
                           : row  ? "known"
                                  : "none"}};
  out["next"] = known && !coming.empty() ? ordered_json(FormatTime(coming.front().at)) : ordered_json();
  out["last"] = row ? OrNull(row->state.last) : ordered_json();
  out["last_task"] = OrNull(TaskText(schedule));
  if (const auto& one = schedule.under_way) {
    out["under_way"] = {
        {"firing", FormatTime(one->firing)}, {"submitted", one->submitted}, {"refused", one->refused}};
  }
  if (const auto& one = schedule.last_ended) {
    out["last_fan_out"] = {{"firing", FormatTime(one->firing)},
                           {"submitted", one->submitted},
                           {"refused", one->refused},
                           {"taken", one->taken}};
  }
  out["over"] = !OverText(schedule).empty();
  out["fired"] = row ? ordered_json(row->fired) : known ? ordered_json(0) : ordered_json();
  out["lapsed"] = row ? ordered_json(row->lapsed) : known ? ordered_json(0) : ordered_json();
  out["troubles"] = TroubleTexts(schedule);
  if (!known) out["why_unknown"] = schedule.unknown;
  return out;
}

}  // namespace millrace::engine
