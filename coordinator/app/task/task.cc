#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/task/task_lookup.h"
#include "coordinator/upkeep/task_json.h"
#include "framework/base/time_text.h"
#include "framework/task/expiry.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

std::string TimeText(WallTime time, WallTime now) {
  return FormatTime(time) + " (" + Relative(time, now) + ")";
}

std::string ExpiryText(std::optional<WallTime> expiry, WallTime now) {
  if (!expiry) return "";
  return *expiry < kNeverExpires ? TimeText(*expiry, now) : "never";
}

std::string NumberText(std::uint32_t number) { return number == 0 ? "" : std::to_string(number); }

Ink StateInk(const std::string& state) {
  if (state == ToString(TaskState::Failed)) return Ink::Bad;
  if (state == ToString(TaskState::Succeeded)) return Ink::Good;
  if (state == ToString(TaskState::Running)) return Ink::Active;
  if (state == ToString(TaskState::Held)) return Ink::Caution;
  return state == ToString(TaskState::Cancelled) ? Ink::Quiet : Ink::Plain;
}

// Everything, for a person: the fields, then the table of failed attempts.
std::string TaskToText(const std::string& shard, const TaskRecord& record, WallTime now, std::size_t width) {
  const Task& task = record.task;
  const bool waits = task.state == TaskState::Waiting;
  std::string text = FieldText({
      {"task", ToString(TaskName{shard, task.key})},
      {"state", std::string(ToString(task.state)) + (task.cancel ? " (asked to stop)" : ""), false,
       StateInk(ToString(task.state))},
      {"handler", task.handler},
      {"params", task.params, true},
      {"key", task.biz_key},
      {"batch", task.batch},
      {"priority", std::to_string(task.priority)},
      {"slice", std::to_string(task.slice)},
      {"created", TimeText(task.created_at, now)},
      {waits ? "due" : "was due", TimeText(task.run_at, now)},
      {"expires", ExpiryText(task.expires_at, now)},
      {"claimed", task.claimed_at ? TimeText(*task.claimed_at, now) : ""},
      {"claimed by", task.claimed_by},
      {"finished", record.finished_at ? TimeText(*record.finished_at, now) : ""},
      {"attempts", std::to_string(task.attempt)},
      {"failures", NumberText(task.failures)},
      {"crashes", NumberText(task.crashes)},
      {"result", record.result},
      {"last error", task.last_error},
      {"progress", task.progress, ordered_json::accept(task.progress)},
  });
  if (record.attempts.empty()) return text;
  TextTable table{
      {{"attempt", true}, {"when", false, 1}, {"worker", false, 3}, {"how", false, 2}, {"class"}, {"why"}},
      {}};
  for (const AttemptRecord& attempt : record.attempts) {
    const std::vector<std::string> lines = LinesOf(attempt.message);
    table.rows.push_back({std::to_string(attempt.attempt), FormatTime(attempt.at), attempt.incarnation,
                          attempt.kind, attempt.error_class, lines.empty() ? "" : lines.front()});
    for (std::size_t i = 1; i < lines.size(); ++i) table.rows.push_back({"", "", "", "", "", lines[i]});
  }
  return text + "\n\nAttempts that did not succeed\n" + table.Text(width);
}

struct TaskListOptions {
  TaskChoice choice;
  std::size_t limit = 50;
  std::string after;
};

struct Listed {
  std::string shard;
  TaskRecord record;
};

struct Listing {
  std::vector<Listed> tasks;
  std::string next;  // empty: the end
};

// A place in the listing: `shard/table:` and the list's own mark.
struct Place {
  std::string shard;
  std::string table;
  std::string mark;
};

Result<Place> ReadPlace(const std::string& text) {
  const auto slash = text.find('/');
  const auto colon = text.find(':', slash == std::string::npos ? 0 : slash);
  if (slash == std::string::npos || colon == std::string::npos) {
    return Fail(ErrorCode::Invalid, "--after: '" + text + "' is not what an earlier list gave as its next");
  }
  return Place{text.substr(0, slash), text.substr(slash + 1, colon - slash - 1), text.substr(colon + 1)};
}

Result<Listing> ReadListing(TaskShards& open, const TaskListOptions& options, const TaskFilter& filter) {
  BOOST_OUTCOME_TRY(tables, TablesOf(open, options.choice));
  Place from;
  if (!options.after.empty()) {
    BOOST_OUTCOME_TRY(place, ReadPlace(options.after));
    from = place;
    if (auto away = open.away.find(from.shard); away != open.away.end()) return Fail(away->second);
    const auto is_there = [&](const auto& at) { return at.first == from.shard && at.second == from.table; };
    if (std::none_of(tables.begin(), tables.end(), is_there)) {
      return Fail(ErrorCode::Invalid,
                  "--after: there is no table " + from.shard + "/" + from.table + " here");
    }
  }
  Listing listing;
  bool skip = !options.after.empty();
  for (const auto& [shard, table] : tables) {
    if (skip && (shard != from.shard || table != from.table)) continue;
    std::string mark = skip ? from.mark : "";
    skip = false;
    if (open.away.contains(shard)) continue;  // since it was asked for another table
    do {
      if (listing.tasks.size() == options.limit) {
        listing.next = shard + "/" + table + ":" + mark;
        return listing;
      }
      const std::size_t room = std::min<std::size_t>(options.limit - listing.tasks.size(), kMaxBatchRows);
      auto page = open.Operations(shard).List(table, filter, mark, room);
      if (!page && IsForPeople(page.error().code)) return Fail(page.error());
      if (!page) {
        open.away[shard] = page.error();
        break;
      }
      for (TaskRecord& record : page->records) listing.tasks.push_back({shard, std::move(record)});
      mark = page->next;
    } while (!mark.empty());
  }
  return listing;
}

ordered_json ToJson(const Listing& listing, const TaskShards& open) {
  ordered_json out;
  out["tasks"] = ordered_json::array();
  for (const Listed& task : listing.tasks) out["tasks"].push_back(TaskToJson(task.shard, task.record));
  out["next"] = listing.next.empty() ? ordered_json() : ordered_json(listing.next);
  out["away"] = AwayJson(open.away);
  return out;
}

// What a person wants to see of a task beside its name: why it failed, or what it is about.
std::string About(const TaskRecord& record) {
  const Task& task = record.task;
  if (!task.last_error.empty() && task.state != TaskState::Succeeded) return task.last_error;
  return task.params;
}

std::string When(const TaskRecord& record, WallTime now) {
  return Relative(record.finished_at.value_or(record.task.run_at), now);
}

void PrintListing(const Listing& listing, WallTime now) {
  if (listing.tasks.empty()) {
    PrintLine("no task matches");
    return;
  }
  TextTable table{{{"task"},
                   {"state", false, 0, StateInk},
                   {"handler", false, 1},
                   {"key", false, 3},
                   {"attempts", true, 4},
                   {"due or ended", false, 2},
                   {"about"}},
                  {}};
  for (const Listed& listed : listing.tasks) {
    const Task& task = listed.record.task;
    table.rows.push_back({ToString(TaskName{listed.shard, task.key}), ToString(task.state), task.handler,
                          task.biz_key, std::to_string(task.attempt), When(listed.record, now),
                          About(listed.record)});
  }
  PrintTable(table);
  if (!listing.next.empty()) PrintNote("more: add --after '" + listing.next + "'");
}

Result<ExitCode> RunTaskList(const TaskListOptions& options) {
  BOOST_OUTCOME_TRY(filter, FilterOf(options.choice));
  filter.newest_first = true;
  BOOST_OUTCOME_TRY(open, OpenTaskShards(options.choice.common, options.choice.shard));
  BOOST_OUTCOME_TRY(listing, ReadListing(open, options, filter));
  if (options.choice.common.json) {
    PrintJson(ToJson(listing, open));
  } else {
    PrintListing(listing, SystemClock().WallNow());
  }
  return TellAway(open.away, "the tasks of shard ", " are not listed");
}

// All that are named, as far as they are there.
Result<ExitCode> RunTaskShow(const TaskChoice& choice) {
  BOOST_OUTCOME_TRY(open, OpenTaskShards(choice.common, choice.shard));
  BOOST_OUTCOME_TRY(names, NamedTasks(open, choice));
  const std::size_t width = OutputIsTerminal() ? TerminalWidth() : 0;
  ordered_json tasks = ordered_json::array();
  std::string text;
  std::vector<Error> errors;
  for (const TaskName& name : names) {
    const auto record = GetTask(open, name);
    if (!record) {
      errors.push_back(record.error());
      continue;
    }
    tasks.push_back(TaskToJson(name.shard, *record));
    text += (text.empty() ? "" : "\n\n") + TaskToText(name.shard, *record, SystemClock().WallNow(), width);
  }
  if (choice.common.json) {
    PrintJson({{"tasks", tasks}});
  } else if (!text.empty()) {
    PrintLine(text);
  }
  for (const Error& error : errors) PrintError(error);
  return errors.empty() ? ExitCode::Done : ExitCodeOf(errors.front().code);
}

}  // namespace

void AddTaskReads(CLI::App& task, Chosen& chosen) {
  const auto list = AddCommand(task, chosen, "list", "List tasks; of those that have ended the newest first",
                               "  millrace task list --state failed --since 1h\n"
                               "  millrace task list --handler http_call --class timeout",
                               RunTaskList);
  AddChoice(*list.app, list->choice);
  AddFilters(*list.app, list->choice);
  list.Add("--limit", list->limit, "at most so many", "N")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  list.Add("--after", list->after, "go on where an earlier list ended", "MARK");
  const auto show =
      AddCommand(task, chosen, "show", "Show everything about tasks",
                 "  millrace task show main/tasks/17\n  millrace task show 17 18 19", RunTaskShow);
  AddNames(*show.app, *show.options);
  AddChoice(*show.app, *show.options);
}

}  // namespace millrace::engine
