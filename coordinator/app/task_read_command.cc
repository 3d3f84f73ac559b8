#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/commands.h"
#include "coordinator/app/task_lookup.h"
#include "coordinator/app/task_text.h"
#include "coordinator/app/terminal.h"
#include "coordinator/app/text_table.h"
#include "coordinator/coordination/json_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

struct Listed {
  std::string shard;
  TaskRecord record;
};

struct Listing {
  std::vector<Listed> tasks;
  std::string next;  // empty: the end
};

// A place in the listing: `shard/table:` and the desk's own mark.
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

Result<Listing> ReadListing(Desks& desks, const TaskListOptions& options, const TaskFilter& filter) {
  BOOST_OUTCOME_TRY(tables, TablesOf(desks, options.choice));
  Place from;
  if (!options.after.empty()) {
    BOOST_OUTCOME_TRY(place, ReadPlace(options.after));
    from = place;
    if (auto away = desks.away.find(from.shard); away != desks.away.end()) return Fail(away->second);
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
    if (desks.away.contains(shard)) continue;  // since it was asked for another table
    do {
      if (listing.tasks.size() == options.limit) {
        listing.next = shard + "/" + table + ":" + mark;
        return listing;
      }
      const std::size_t room = std::min<std::size_t>(options.limit - listing.tasks.size(), kMaxBatchRows);
      auto page = desks.Desk(shard).List(table, filter, mark, room);
      if (!page && page.error().code == ErrorCode::Invalid) return Fail(page.error());
      if (!page) {
        desks.away[shard] = page.error();
        break;
      }
      for (TaskRecord& record : page->records) listing.tasks.push_back({shard, std::move(record)});
      mark = page->next;
    } while (!mark.empty());
  }
  return listing;
}

ordered_json ToJson(const Listing& listing, const Desks& desks) {
  ordered_json out;
  out["tasks"] = ordered_json::array();
  for (const Listed& task : listing.tasks) out["tasks"].push_back(TaskToJson(task.shard, task.record));
  out["next"] = listing.next.empty() ? ordered_json() : ordered_json(listing.next);
  out["away"] = ordered_json::object();
  for (const auto& [shard, error] : desks.away) out["away"][shard] = error.message;
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
  TextTable table{
      {{"task"}, {"state"}, {"handler"}, {"key"}, {"attempts", true}, {"due or ended"}, {"about"}}, {}};
  for (const Listed& listed : listing.tasks) {
    const Task& task = listed.record.task;
    table.rows.push_back({ToString(TaskName{listed.shard, task.key}), ToString(task.state), task.handler,
                          task.biz_key, std::to_string(task.attempt), When(listed.record, now),
                          About(listed.record)});
  }
  PrintLine(table.Text(OutputIsTerminal() ? TerminalWidth() : 0));
  if (!listing.next.empty()) PrintNote("more: add --after '" + listing.next + "'");
}

}  // namespace

Result<ExitCode> RunTaskList(const TaskListOptions& options) {
  if (options.limit == 0) return Fail(ErrorCode::Invalid, "--limit must be 1 or more");
  BOOST_OUTCOME_TRY(filter, FilterOf(options.choice));
  BOOST_OUTCOME_TRY(desks, OpenDesks(options.choice.common, options.choice.shard));
  BOOST_OUTCOME_TRY(listing, ReadListing(desks, options, filter));
  if (options.choice.common.json) {
    PrintLine(JsonText(ToJson(listing, desks), OutputIsTerminal() ? 2 : -1));
  } else {
    PrintListing(listing, SystemClock().WallNow());
  }
  for (const auto& [shard, error] : desks.away)
    PrintError("the tasks of shard " + shard + " are not listed: " + error.message);
  return desks.away.empty() ? ExitCode::Done : ExitCodeOf(desks.away.begin()->second.code);
}

Result<ExitCode> RunTaskShow(const TaskChoice& choice) {
  BOOST_OUTCOME_TRY(desks, OpenDesks(choice.common, choice.shard));
  BOOST_OUTCOME_TRY(name, OneNamedTask(desks, choice));
  BOOST_OUTCOME_TRY(record, GetTask(desks, name));
  if (choice.common.json) {
    PrintLine(JsonText(TaskToJson(name.shard, record), OutputIsTerminal() ? 2 : -1));
  } else {
    PrintLine(
        TaskToText(name.shard, record, SystemClock().WallNow(), OutputIsTerminal() ? TerminalWidth() : 0));
  }
  return ExitCode::Done;
}

}  // namespace millrace::engine
