#include "coordinator/app/status/status_report.h"

#include <algorithm>
#include <cmath>

#include "coordinator/app/cli/text.h"
#include "coordinator/app/cli/text_table.h"
#include "coordinator/app/cluster/cluster_health.h"
#include "coordinator/app/cluster/cluster_pause.h"
#include "coordinator/upkeep/task_json.h"
#include "framework/base/escape.h"
#include "framework/base/time_text.h"
#include "framework/config/policy_text.h"
#include "framework/store/batch_store.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

// Rows of a table for a person; JSON has all.
constexpr std::size_t kMostRows = 20;
constexpr std::size_t kMostClasses = 5;

std::string NumberOf(const Counted& counted) {
  if (!counted.more) return WithCommas(counted.count);
  if (counted.count == 0) return "?";
  return WithCommas(std::min(counted.count, kExactBacklog)) + "+";
}

std::string RateText(double rate) {
  if (rate == 0) return "0";
  if (rate < 10) {
    std::string text =
        std::to_string(std::llround(rate * 10) / 10) + "." + std::to_string(std::llround(rate * 10) % 10);
    return text;
  }
  return WithCommas(static_cast<std::uint64_t>(std::llround(rate)));
}

std::string AgoText(Micros ago) { return ago < std::chrono::seconds(1) ? "now" : ElapsedText(ago) + " ago"; }

const char* LifeText(WorkerLife life) {
  switch (life) {
    case WorkerLife::Alive:
      return "alive";
    case WorkerLife::Unsure:
      return "registered";
    case WorkerLife::Silent:
      return "silent";
    case WorkerLife::Gone:
      return "gone";
  }
  return "";
}

constexpr std::size_t kLeastLast = 12;  // to which the last column may be cut

void Drop(TextTable& table, std::size_t column) {
  const auto at = static_cast<std::ptrdiff_t>(column);
  table.columns.erase(table.columns.begin() + at);
  for (auto& row : table.rows) row.erase(row.begin() + at);
}

bool SaysNothing(const TextTable& table, std::size_t column) {
  return std::all_of(table.rows.begin(), table.rows.end(), [&](const auto& row) {
    return row[column].empty() || row[column] == "0" || row[column] == "-";
  });
}

std::size_t WidthOf(const TextTable& table) {
  std::size_t width = 0;
  for (std::size_t column = 0; column + 1 < table.columns.size(); ++column) {
    std::size_t widest = DisplayWidth(table.columns[column].title);
    for (const auto& row : table.rows) widest = std::max(widest, DisplayWidth(Escape(row[column])));
    width += widest + 2;
  }
  return width + kLeastLast;
}

// `lesser` columns are left out where no row has anything to say, and where there is no room, these first.
// Into a pipe (`width` 0) all are written: whoever reads that counts them. `rest` is what comes below.
void Add(std::string& text, TextTable table, const std::vector<const char*>& lesser, std::size_t width,
         const std::string& rest = "") {
  for (const bool empty : {true, false}) {
    for (const char* title : lesser) {
      for (std::size_t column = 0; width > 0 && column < table.columns.size(); ++column) {
        if (table.columns[column].title != title) continue;
        if (empty ? SaysNothing(table, column) : WidthOf(table) > width) Drop(table, column);
        break;
      }
    }
  }
  const std::size_t more = table.rows.size() > kMostRows ? table.rows.size() - kMostRows : 0;
  if (more > 0) table.rows.resize(kMostRows);
  text += table.Text(width) + "\n";
  if (more > 0) text += "… and " + std::to_string(more) + " more, in --json\n";
  text += rest;
  text += "\n";
}

// The limit of a type in words; empty: it has none.
std::string LimitOf(const StatusFacts& facts, const std::string& handler) {
  const auto config = facts.handlers.find(handler);
  return config == facts.handlers.end() || !config->second.limit ? "" : LimitText(*config->second.limit);
}

bool AllRead(const StatusFacts& facts) {
  return std::all_of(facts.shards.begin(), facts.shards.end(),
                     [](const auto& shard) { return shard.second.error.empty(); });
}

void AddWorkers(const StatusFacts& facts, std::size_t width, std::string& text) {
  if (facts.workers.empty()) {
    text += AllRead(facts) ? "no worker is registered\n\n" : "of no worker is it known that it is there\n\n";
    return;
  }
  TextTable table{{{"worker"},
                   {"state"},
                   {"last sign"},
                   {"running", true},
                   {"tasks/s", true},
                   {"slices", true},
                   {"serves"},
                   {"host:pid"}},
                  {}};
  for (const WorkerFacts& worker : facts.workers) {
    const bool here = worker.life == WorkerLife::Alive && !worker.state.empty();
    const auto& sign = worker.last_sign;
    table.rows.push_back({Fit(worker.name, 24), here ? worker.state : LifeText(worker.life),
                          !sign  ? "-"
                          : here ? SignText(*sign)
                                 : AgoText(*sign),
                          worker.running ? WithCommas(*worker.running) : "-",
                          worker.ended_per_second ? RateText(*worker.ended_per_second) : "-",
                          worker.slices ? WithCommas(*worker.slices) : "-",
                          worker.load_balance.empty() ? "-" : Fit(worker.load_balance, 16), worker.place});
  }
  Add(text, std::move(table), {"serves", "slices", "tasks/s", "running"}, width);
}

void AddTypes(const StatusFacts& facts, const std::map<std::string, TypeState>& types, std::size_t width,
              std::string& text) {
  if (types.empty()) {
    text += AllRead(facts) ? "there are no tasks: millrace submit --handler noop adds one\n\n"
                           : "no task is known of in the shards that can be read\n\n";
    return;
  }
  TextTable table{{{"handler"},
                   {"waiting", true},
                   {"running", true},
                   {"held", true},
                   {"failed", true},
                   {"cancelled", true},
                   {"succeeded", true},
                   {"ended/s", true},
                   {"oldest due"}},
                  {}};
  const bool limited = std::any_of(facts.handlers.begin(), facts.handlers.end(),
                                   [](const auto& handler) { return handler.second.limit.has_value(); });
  if (limited) table.columns.push_back({"limit"});
  std::vector<std::pair<std::string, TypeState>> rows(types.begin(), types.end());
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.second.now.waiting.count > b.second.now.waiting.count;
  });
  for (const auto& [handler, type] : rows) {
    const auto rate = facts.ended.find(handler);
    std::string due = "-";
    if (type.now.oldest_due) {
      due = Relative(*type.now.oldest_due, facts.now);
      if (IsHeld(HoldsOn(facts, handler, type))) due += ", held";
    } else if (type.now.next_due) {
      due = Relative(*type.now.next_due, facts.now);
    }
    table.rows.push_back({Fit(handler, 24), NumberOf(type.now.waiting), NumberOf(type.now.running),
                          NumberOf(type.now.held), WithCommas(type.failed), WithCommas(type.cancelled),
                          WithCommas(type.succeeded),
                          !facts.window               ? "-"
                          : rate == facts.ended.end() ? "0"
                                                      : RateText(rate->second),
                          due});
    if (!limited) continue;
    const std::string limit = LimitOf(facts, handler);
    table.rows.back().push_back(limit.empty() ? "-" : limit);
  }
  Add(text, std::move(table), {"cancelled", "ended/s", "held", "succeeded"}, width);
}

Counted WaitingIn(const ShardFacts& shard) {
  Counted waiting;
  for (const HandlerOverview& one : shard.waiting.handlers) waiting += one.waiting;
  return waiting;
}

std::uint64_t FailedIn(const ShardFacts& shard) {
  std::uint64_t failed = 0;
  for (const TaskTotals& total : shard.totals) failed += total.failed;
  return failed;
}

void AddShards(const StatusFacts& facts, std::size_t width, std::string& text) {
  if (facts.shards.size() < 2) return;
  TextTable table{{{"shard"}, {"tables", true}, {"waiting", true}, {"failed", true}, {"where"}}, {}};
  for (const auto& [name, shard] : facts.shards) {
    const bool away = !shard.error.empty();
    table.rows.push_back({name, away ? "?" : WithCommas(shard.tables.size()),
                          away ? "?" : NumberOf(WaitingIn(shard)), away ? "?" : WithCommas(FailedIn(shard)),
                          shard.address});
  }
  Add(text, std::move(table), {}, width);
}

void AddFailures(const StatusFacts& facts, std::size_t width, std::string& text) {
  TextTable table{{{"failed", true}, {"handler"}, {"class"}, {"newest"}, {"why"}}, {}};
  std::uint64_t looked = 0;
  std::uint64_t all = 0;
  bool complete = true;
  std::vector<FailedClass> classes;
  for (const auto& [name, shard] : facts.shards) {
    classes.insert(classes.end(), shard.failed.classes.begin(), shard.failed.classes.end());
    looked += shard.failed.looked_at;
    complete = complete && shard.failed.all;
    all += FailedIn(shard);
  }
  if (classes.empty()) return;
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return a.count > b.count; });
  for (const FailedClass& one : classes) {
    table.rows.push_back({WithCommas(one.count), Fit(one.handler, 24),
                          one.error_class.empty() ? "-" : Fit(one.error_class, 16),
                          Relative(one.at, facts.now), one.error});
  }
  if (table.rows.size() > kMostClasses) table.rows.resize(kMostClasses);
  text +=
      Wrapped("failures by class" +
                  (complete ? "" : ", among the newest " + WithCommas(looked) + " of " + WithCommas(all)) +
                  ": millrace task list --state failed",
              width) +
      "\n";
  Add(text, std::move(table), {"newest"}, width);
}

std::map<std::string, BatchSums> BatchSumsOf(const StatusFacts& facts) {
  std::map<std::string, BatchSums> batches;
  for (const auto& [name, shard] : facts.shards) {
    for (const TaskTotals& total : shard.totals) {
      if (!total.batch.empty()) batches[total.batch] += {total.succeeded, total.cancelled, total.failed};
    }
  }
  return batches;
}

// As `batch list` has it.
const char* StateText(const BatchGlance::Seen& batch) {
  return batch.state ? ToString(*batch.state) : "plain";
}

void AddBatches(const StatusFacts& facts, std::size_t width, std::string& text) {
  if (facts.batches.empty()) return;
  auto sums = BatchSumsOf(facts);
  TextTable table{{{"batch"}, {"succeeded", true}, {"failed", true}, {"cancelled", true}, {"state"}}, {}};
  for (const BatchGlance::Seen& batch : facts.batches) {
    const BatchSums& ended = sums[batch.name];
    table.rows.push_back({Fit(batch.name, 32), WithCommas(ended.succeeded), WithCommas(ended.failed),
                          WithCommas(ended.cancelled), StateText(batch)});
  }
  const Counted& others = facts.other_batches;
  std::string rest;
  if (others.more) {
    rest = "… and more: millrace batch list\n";
  } else if (others.count > 0) {
    rest = "… and " + WithCommas(others.count) + " more: millrace batch list\n";
  }
  Add(text, std::move(table), {}, width, rest);
}

// What runs of the types of which only a few may run at once.
void AddPermits(const StatusFacts& facts, std::size_t width, std::string& text) {
  TextTable table{{{"permit of"}, {"held by"}, {"for task"}, {"since"}}, {}};
  for (const auto& [name, shard] : facts.shards) {
    for (const Permit& permit : shard.permits) {
      table.rows.push_back({Fit(permit.handler, 24), permit.worker.empty() ? permit.holder : permit.worker,
                            permit.task.empty() ? "-" : permit.task,
                            permit.taken_at ? Relative(*permit.taken_at, facts.now) : "-"});
    }
  }
  if (!table.rows.empty()) Add(text, std::move(table), {"since"}, width);
}

void AddHead(const StatusFacts& facts, std::size_t width, std::string& text) {
  std::string where;
  if (facts.shards.size() == 1) {
    const ShardFacts& shard = facts.shards.begin()->second;
    where = shard.address + ", " + Count(shard.tables.size(), "table", "tables");
  } else {
    where = Count(facts.shards.size(), "shard", "shards");
  }
  if (facts.cluster && facts.cluster->unreached.empty())
    where += facts.cluster->leader.empty() ? "; nobody leads" : "; " + facts.cluster->leader + " leads";
  text +=
      Wrapped(Escape(where) + "; " + FormatTime(std::chrono::floor<std::chrono::seconds>(facts.now)), width) +
      "\n\n";
}

void AddRate(const StatusFacts& facts, std::string& text) {
  double all = 0;
  for (const auto& [handler, rate] : facts.ended) all += rate;
  if (facts.window) {
    text += RateText(all) + " tasks ended a second, over the last " + ElapsedText(*facts.window) + "\n";
    return;
  }
  double told = 0;
  bool any = false;
  for (const WorkerFacts& worker : facts.workers) {
    any = any || worker.ended_per_second;
    told += worker.ended_per_second.value_or(0);
  }
  if (any) text += RateText(told) + " tasks settled a second, by the workers' own word\n";
}

void AddAlerts(const StatusFacts& facts, std::string& text) {
  if (!facts.alerts) return;
  std::size_t firing = 0;
  bool all_told = true;
  for (const AlertFacts& one : *facts.alerts) {
    if (one.fires.value_or(false)) ++firing;
    all_told = all_told && one.fires.has_value();
  }
  std::string fire = firing == 0 ? "none fires" : Count(firing, "fires", "fire");
  if (!all_told) fire = (firing == 0 ? "?" : WithCommas(firing) + " or more") + " fire";
  text += Count(facts.alerts->size(), "alert", "alerts") + " configured, " + fire + "\n";
}

void AddFindings(const StatusFacts& facts, std::size_t width, std::string& text) {
  const auto findings = FindingsOf(facts);
  if (findings.empty()) {
    text += "nothing is wrong";
    return;
  }
  for (std::size_t i = 0; i < findings.size(); ++i) {
    const Trouble& finding = findings[i];
    text += (i == 0 ? "" : "\n") + Wrapped("! " + Escape(finding.what), width);
    // A line of its own, so that a command can be copied.
    if (!finding.remedy.empty()) text += "\n  " + Wrapped(Escape(finding.remedy), width == 0 ? 0 : width - 2);
  }
}

ordered_json ToJson(const Counted& counted) { return {{"count", counted.count}, {"more", counted.more}}; }

ordered_json SecondsOrNull(const std::optional<Micros>& time) {
  return time ? ordered_json(static_cast<double>(time->count()) / 1e6) : ordered_json(nullptr);
}

ordered_json ToJson(const WorkerFacts& worker) {
  ordered_json json{{"worker", worker.name}, {"life", LifeText(worker.life)}, {"place", worker.place}};
  json["state"] = worker.state.empty() ? ordered_json(nullptr) : ordered_json(worker.state);
  json["last_sign_seconds"] = SecondsOrNull(worker.last_sign);
  json["running"] = worker.running ? ordered_json(*worker.running) : ordered_json(nullptr);
  json["settles_per_second"] =
      worker.ended_per_second ? ordered_json(*worker.ended_per_second) : ordered_json(nullptr);
  json["slices"] = worker.slices ? ordered_json(*worker.slices) : ordered_json(nullptr);
  json["serves"] = worker.load_balance.empty() ? ordered_json(nullptr) : ordered_json(worker.load_balance);
  return json;
}

ordered_json ToJson(const std::string& handler, const TypeState& type, const StatusFacts& facts) {
  ordered_json json{{"handler", handler},
                    {"waiting", ToJson(type.now.waiting)},
                    {"running", ToJson(type.now.running)},
                    {"held", ToJson(type.now.held)},
                    {"succeeded", type.succeeded},
                    {"cancelled", type.cancelled},
                    {"failed", type.failed},
                    {"attempts_failed", type.attempts_failed},
                    {"oldest_due", TimeOrNull(type.now.oldest_due)},
                    {"next_due", TimeOrNull(type.now.next_due)}};
  json["held_by"] = ordered_json::array();
  for (const Hold& hold : HoldsOn(facts, handler, type))
    json["held_by"].push_back({{"code", hold.code}, {"text", hold.text}});
  const auto rate = facts.ended.find(handler);
  if (const std::string limit = LimitOf(facts, handler); !limit.empty()) json["limit"] = limit;
  json["ended_per_second"] =
      !facts.window ? ordered_json(nullptr) : ordered_json(rate == facts.ended.end() ? 0.0 : rate->second);
  return json;
}

ordered_json ToJson(const std::string& name, const ShardFacts& shard) {
  ordered_json json{{"shard", name}, {"address", shard.address}, {"tables", shard.tables.size()}};
  const bool away = !shard.error.empty();
  json["waiting"] = away ? ordered_json(nullptr) : ToJson(WaitingIn(shard));
  json["failed"] = away ? ordered_json(nullptr) : ordered_json(FailedIn(shard));
  json["error"] = away ? ordered_json(shard.error) : ordered_json(nullptr);
  json["failures"] = ordered_json::array();
  for (const FailedClass& one : shard.failed.classes) {
    json["failures"].push_back({{"table", one.table.text()},
                                {"handler", one.handler},
                                {"class", one.error_class},
                                {"count", one.count},
                                {"newest", name + "/" + one.table + "/" + std::to_string(one.newest)},
                                {"at", FormatTime(one.at)},
                                {"error", one.error}});
  }
  json["failures_looked_at"] = shard.failed.looked_at;
  json["failures_are_all"] = shard.failed.all;
  json["pauses"] = ordered_json::array();
  for (const PauseRecord& pause : shard.pauses) json["pauses"].push_back(PauseJson(pause));
  json["permits"] = ordered_json::array();
  for (const Permit& permit : shard.permits) {
    json["permits"].push_back({{"handler", permit.handler},
                               {"number", permit.number},
                               {"worker", permit.worker},
                               {"task", permit.task},
                               {"attempt", permit.attempt},
                               {"since", TimeOrNull(permit.taken_at)}});
  }
  return json;
}

}  // namespace

std::string StatusText(const StatusFacts& facts, std::size_t width) {
  std::string text;
  AddHead(facts, width, text);
  AddWorkers(facts, width, text);
  AddTypes(facts, TypesOf(facts), width, text);
  AddShards(facts, width, text);
  AddFailures(facts, width, text);
  AddBatches(facts, width, text);
  AddPermits(facts, width, text);
  AddRate(facts, text);
  AddAlerts(facts, text);
  for (const std::string& held : HeldLines(facts)) text += Wrapped(Escape(held), width) + "\n";
  AddFindings(facts, width, text);
  return text;
}

ordered_json StatusJson(const StatusFacts& facts) {
  ordered_json out{{"now", FormatTime(facts.now)}, {"can_run", CanRun(facts)}};
  for (const char* list : {"workers", "handlers", "shards", "batches", "findings"})
    out[list] = ordered_json::array();
  for (const WorkerFacts& worker : facts.workers) out["workers"].push_back(ToJson(worker));
  for (const auto& [handler, type] : TypesOf(facts)) out["handlers"].push_back(ToJson(handler, type, facts));
  for (const auto& [name, shard] : facts.shards) out["shards"].push_back(ToJson(name, shard));
  auto sums = BatchSumsOf(facts);
  for (const BatchGlance::Seen& batch : facts.batches) {
    const BatchSums& ended = sums[batch.name];
    out["batches"].push_back({{"batch", batch.name},
                              {"succeeded", ended.succeeded},
                              {"failed", ended.failed},
                              {"cancelled", ended.cancelled},
                              {"state", StateText(batch)}});
  }
  out["other_batches"] = ToJson(facts.other_batches);
  out["window_seconds"] = SecondsOrNull(facts.window);
  if (facts.cluster) {
    out["cluster"] = {{"leader", facts.cluster->leader},
                      {"stands_still", facts.cluster->standstill ? ToText(*facts.cluster->standstill) : ""},
                      {"unreached", facts.cluster->unreached},
                      {"pauses", facts.cluster->pauses}};
  }
  if (facts.alerts) {
    out["alerts"] = ordered_json::array();
    for (const AlertFacts& one : *facts.alerts)
      out["alerts"].push_back({{"alert", one.name},
                               {"fires", one.fires ? ordered_json(*one.fires) : ordered_json(nullptr)},
                               {"text", one.text}});
  }
  for (const Trouble& finding : FindingsOf(facts))
    out["findings"].push_back({{"what", finding.what}, {"remedy", finding.remedy}});
  return out;
}

}  // namespace millrace::engine
