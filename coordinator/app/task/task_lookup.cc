#include "coordinator/app/task/task_lookup.h"

#include <algorithm>

#include "coordinator/app/command/cluster_client.h"
#include "coordinator/app/command/command.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

Status CheckThere(const TaskShards& open, const std::string& shard) {
  const auto away = open.away.find(shard);
  if (away == open.away.end()) return {};
  return Fail(away->second.code, "shard " + shard + ": " + away->second.message);
}

// A bare id belongs to the only table of the only shard; a name that says more needs no such luck.
Result<TaskName> ReadName(TaskShards& open, const TaskChoice& choice, const std::string& text) {
  TaskName home;
  const bool has_shard = std::count(text.begin(), text.end(), '/') >= 2;
  if (!has_shard) {
    BOOST_OUTCOME_TRY(shard, PickShard(open.shards, choice.shard));
    home.shard = shard->name;
    BOOST_OUTCOME_TRYV(CheckThere(open, home.shard));
    if (text.find('/') == std::string::npos) {
      BOOST_OUTCOME_TRYV(ParseTaskName(text, home));
      BOOST_OUTCOME_TRY(table, PickTable(*shard, choice.table));
      home.key.table = table;
    }
  }
  BOOST_OUTCOME_TRY(name, ParseTaskName(text, home));
  BOOST_OUTCOME_TRY(shard, PickShard(open.shards, name.shard));
  BOOST_OUTCOME_TRYV(CheckThere(open, name.shard));
  BOOST_OUTCOME_TRYV(PickTable(*shard, name.key.table));
  return name;
}

// A key is of a handler and a shard: no task is picked where there are several.
Result<TaskName> FindByKey(TaskShards& open, const TaskChoice& choice) {
  BOOST_OUTCOME_TRY(tables, TablesOf(open, choice));
  std::optional<TaskName> found;
  for (const auto& [shard, table] : tables) {
    // Waiting rows have no index of keys: they are looked through until one is found.
    auto key = open.Operations(shard).Find(table, choice.handler, choice.key, found.has_value());
    if (!key && key.error().code == ErrorCode::NotFound) continue;
    if (!key) return Fail(key.error());
    const TaskName name{shard, *key};
    if (found && *found != name) {
      return Fail(ErrorCode::Invalid, "several tasks have the key '" + choice.key +
                                          "': say which with --handler or --shard, or by its name; two are " +
                                          ToString(*found) + " and " + ToString(name));
    }
    found = name;
  }
  if (found) return *found;
  const std::string none = "no task has the key '" + choice.key + "'" +
                           (choice.handler.empty() ? "" : " of handler " + choice.handler);
  const Status all = CheckAllThere(open);
  if (all) return Fail(ErrorCode::NotFound, none);
  return Fail(all.error().code, none + " in the shards that can be read; " + all.error().message);
}

// A time, or how long ago; nothing where nothing was given.
Result<std::optional<WallTime>> ReadAgo(const char* flag, const std::string& text, WallTime now) {
  if (text.empty()) return std::optional<WallTime>();
  if (const auto ago = ParseDuration(text)) return std::optional(now - *ago);
  if (const auto time = ParseTime(text)) return std::optional(*time);
  return Fail(ErrorCode::Invalid, std::string(flag) + ": '" + text +
                                      "' is neither a duration, such as 90m, nor a time, such as "
                                      "2026-11-20T18:00:00Z");
}

Status ReadTimes(const TaskChoice& choice, TaskFilter& filter) {
  const WallTime now = SystemClock().WallNow();
  if (!choice.until.empty() && !choice.older_than.empty())
    return Fail(ErrorCode::Invalid, "give either --until or --older-than");
  BOOST_OUTCOME_TRY(since, ReadAgo("--since", choice.since, now));
  BOOST_OUTCOME_TRY(until, ReadAgo("--until", choice.until, now));
  BOOST_OUTCOME_TRY(due_before, ReadAgo("--due-before", choice.due_before, now));
  filter.since = since;
  filter.until = until;
  filter.due_before = due_before;
  if (!choice.older_than.empty()) {
    BOOST_OUTCOME_TRY(age, ReadDuration("--older-than", choice.older_than));
    filter.until = now - age;
  }
  if (filter.since && filter.until && *filter.since >= *filter.until)
    return Fail(ErrorCode::Invalid,
                "--since lies behind the end of the time that is meant: no task is of it");
  return {};
}

}  // namespace

Result<TaskShards> OpenTaskShards(const CommonFlags& common, const std::string& shard) {
  TaskShards open;
  BOOST_OUTCOME_TRY(settings, ResolveShards(common, kDefaultStore));
  open.settings = std::move(settings);
  BOOST_OUTCOME_TRY(shards, OpenShards(open.settings, shard));
  open.shards = std::move(shards);
  open.away = PrepareEach(open.shards, Missing::Refuse);
  for (auto& [name, opened] : open.shards) open.operations[name] = opened.store->OpenOperations();
  if (open.away.size() < open.shards.size()) return open;
  if (open.shards.size() == 1) return Fail(open.away.begin()->second);
  return Fail(CheckAllThere(open).error());
}

Status CheckAllThere(const TaskShards& open) {
  return open.away.empty() ? Status() : CheckThere(open, open.away.begin()->first);
}

Result<std::vector<std::pair<std::string, TableName>>> TablesOf(TaskShards& open, const TaskChoice& choice) {
  std::vector<std::pair<std::string, TableName>> tables;
  Status picked;
  for (auto& [name, shard] : open.shards) {
    if (open.away.contains(name)) continue;
    if (!choice.table.empty()) {
      if (auto table = PickTable(shard, choice.table); !table) picked = Fail(table.error());
    }
    for (const TableInfo& info : shard.tables) {
      if (choice.table.empty() || choice.table == info.table) tables.emplace_back(name, info.table);
    }
  }
  if (tables.empty() && !picked) return Fail(picked.error());
  return tables;
}

Result<std::vector<TaskName>> NamedTasks(TaskShards& open, const TaskChoice& choice) {
  std::vector<TaskName> names;
  for (const std::string& text : choice.names) {
    BOOST_OUTCOME_TRY(name, ReadName(open, choice, text));
    names.push_back(name);
  }
  if (!choice.key.empty()) {
    BOOST_OUTCOME_TRY(name, FindByKey(open, choice));
    names.push_back(name);
  }
  if (names.empty()) {
    return Fail(ErrorCode::Invalid,
                "which task? give its name (shard/table/id, or the id alone) or --key KEY");
  }
  return names;
}

Result<TaskName> OneNamedTask(TaskShards& open, const TaskChoice& choice) {
  BOOST_OUTCOME_TRY(names, NamedTasks(open, choice));
  if (names.size() != 1) return Fail(ErrorCode::Invalid, "give one task");
  return names.front();
}

Result<TaskFilter> FilterOf(const TaskChoice& choice) {
  TaskFilter filter;
  if (!choice.state.empty()) {
    auto state = ParseTaskState(choice.state);
    if (!state) return Fail(ErrorCode::Invalid, "--state: " + state.error().message);
    filter.state = *state;
  }
  if (!choice.error_class.empty() && filter.state && *filter.state != TaskState::Failed) {
    return Fail(ErrorCode::Invalid, "--class chooses among failed tasks: leave --state out, or give failed");
  }
  filter.handler = choice.handler;
  filter.batch = choice.batch;
  filter.key = choice.key;
  filter.error_class = choice.error_class;
  filter.slice = choice.slice;
  filter.priority = choice.priority;
  BOOST_OUTCOME_TRYV(ReadTimes(choice, filter));
  return filter;
}

std::string FilterText(const TaskChoice& choice, const TaskFilter& filter) {
  std::string text;
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) text += (text.empty() ? "" : ", ") + std::string(name) + " " + value;
  };
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : std::string(); };
  const auto time = [](const auto& value) { return value ? FormatTime(*value) : std::string(); };
  add("shard", choice.shard);
  add("table", choice.table);
  add("handler", filter.handler);
  add("state", filter.state ? ToString(*filter.state) : "");
  add("batch", filter.batch);
  add("key", filter.key);
  add("class", filter.error_class);
  add("slice", number(filter.slice));
  add("priority", number(filter.priority));
  add("since", time(filter.since));
  add("until", time(filter.until));
  add("due before", time(filter.due_before));
  return text;
}

bool HasFilter(const TaskChoice& choice) {
  return !choice.state.empty() || !choice.handler.empty() || !choice.batch.empty() ||
         !choice.error_class.empty() || choice.slice || choice.priority || !choice.since.empty() ||
         !choice.until.empty() || !choice.older_than.empty() || !choice.due_before.empty();
}

Result<TaskRecord> GetTask(TaskShards& open, const TaskName& name) {
  auto record = open.Operations(name.shard).Get(name.key);
  if (!record && record.error().code == ErrorCode::NotFound) {
    return Fail(ErrorCode::NotFound, "there is no task " + ToString(name) + " in " +
                                         open.shards.at(name.shard).store->Describe() +
                                         ": it never was, or was pruned after its time");
  }
  return record;
}

void AddChoice(CLI::App& app, TaskChoice& choice) {
  app.add_option("--shard", choice.shard, "which shard, where there are several")->type_name("NAME");
  app.add_option("--table", choice.table, "which task table, where there are several")->type_name("NAME");
  app.add_option("--key", choice.key, "the task with this key")->type_name("KEY");
  app.add_option("--handler", choice.handler, "of this task type")->type_name("NAME");
}

void AddFilters(CLI::App& app, TaskChoice& choice, const char* priority) {
  app.add_option("--state", choice.state, "waiting, running, held, succeeded, cancelled or failed")
      ->type_name("STATE");
  app.add_option("--batch", choice.batch, "of this batch")->type_name("NAME");
  app.add_option("--class,--error-class", choice.error_class,
                 "failed tasks whose last error is of this class")
      ->type_name("CLASS");
  app.add_option("--slice", choice.slice, "of this load-balance number")
      ->type_name("N")
      ->check(DecimalTrouble);
  app.add_option(priority, choice.priority, "of this priority")
      ->type_name("N")
      ->check(DecimalTrouble)
      ->check(CLI::Range(0, 9));
  app.add_option("--since", choice.since, "ended, or made and not ended, since then: 90m, or a time")
      ->type_name("TIME");
  app.add_option("--until", choice.until, "the same before then: 90m, for 90 minutes ago, or a time")
      ->type_name("TIME");
  app.add_option("--older-than", choice.older_than, "ended, or made and not ended, longer ago: 30d")
      ->type_name("DURATION");
  app.add_option("--due-before", choice.due_before, "due before then: 90m, for 90 minutes ago, or a time")
      ->type_name("TIME");
}

void AddNames(CLI::App& app, TaskChoice& choice) {
  app.add_option("task", choice.names, "shard/table/id, or the id alone")->type_name("NAME");
}

}  // namespace millrace::engine
