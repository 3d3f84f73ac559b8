#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/commands.h"
#include "coordinator/app/handler_catalog.h"
#include "coordinator/app/task_lookup.h"
#include "coordinator/app/task_text.h"
#include "coordinator/app/task_why.h"
#include "coordinator/app/terminal.h"
#include "coordinator/app/text_table.h"
#include "framework/base/log.h"

namespace millrace {
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
  auto tables = TablesOf(desks, options.choice);
  if (!tables) return Fail(tables.error());
  Place from;
  if (!options.after.empty()) {
    auto place = ReadPlace(options.after);
    if (!place) return Fail(place.error());
    from = *place;
  }
  Listing listing;
  bool skip = !options.after.empty();
  for (const auto& [shard, table] : *tables) {
    if (skip && (shard != from.shard || table != from.table)) continue;
    std::string mark = skip ? from.mark : "";
    skip = false;
    do {
      if (listing.tasks.size() == options.limit) {
        listing.next = shard + "/" + table + ":" + mark;
        return listing;
      }
      const std::size_t room = std::min<std::size_t>(options.limit - listing.tasks.size(), kMaxBatchRows);
      auto page = desks.Desk(shard).List(table, filter, mark, room);
      if (!page) return Fail(page.error());
      for (TaskRecord& record : page->records) listing.tasks.push_back({shard, std::move(record)});
      mark = page->next;
    } while (!mark.empty());
  }
  return listing;
}

ordered_json ToJson(const Listing& listing) {
  ordered_json out;
  out["tasks"] = ordered_json::array();
  for (const Listed& task : listing.tasks) out["tasks"].push_back(TaskToJson(task.shard, task.record));
  out["next"] = listing.next.empty() ? ordered_json() : ordered_json(listing.next);
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

std::string Dump(const ordered_json& value) {
  return value.dump(OutputIsTerminal() ? 2 : -1, ' ', false, ordered_json::error_handler_t::replace);
}

Result<TaskName> OneTask(Desks& desks, const TaskChoice& choice) {
  auto names = NamedTasks(desks, choice);
  if (!names) return Fail(names.error());
  if (names->size() != 1) return Fail(ErrorCode::Invalid, "give one task");
  return names->front();
}

Result<WhyFacts> GatherFacts(Desks& desks, const TaskChoice& choice, const TaskName& name) {
  WhyFacts facts;
  auto record = GetTask(desks, name);
  if (!record) return Fail(record.error());
  facts.shard = name.shard;
  facts.record = std::move(*record);
  facts.now = SystemClock().WallNow();
  const Task& task = facts.record.task;
  facts.config = desks.settings.config.HandlerFor(task.handler);
  facts.plugin_handlers = HandlersAtHand(choice.common);
  if (!task.biz_key.empty()) {
    const auto holder = desks.Desk(name.shard).Find(name.key.table, task.handler, task.biz_key);
    if (holder && *holder != name.key) facts.key_holder = ToString(TaskName{name.shard, *holder});
  }
  auto peers = desks.shards.at(name.shard).store->OpenIncarnations()->Peers();
  if (!peers) return Fail(peers.error());
  for (const PeerBeat& peer : *peers) facts.workers.push_back(peer.incarnation.id);
  const auto pauses = desks.Desk(name.shard).Pauses();
  if (!pauses) return Fail(pauses.error());
  for (const PauseRecord& pause : *pauses) facts.pauses.push_back(pause.what);
  return facts;
}

}  // namespace

Result<ExitCode> RunTaskList(const TaskListOptions& options) {
  if (options.limit == 0) return Fail(ErrorCode::Invalid, "--limit must be 1 or more");
  auto filter = FilterOf(options.choice);
  if (!filter) return Fail(filter.error());
  auto desks = OpenDesks(options.choice.common, options.choice.shard);
  if (!desks) return Fail(desks.error());
  auto listing = ReadListing(*desks, options, *filter);
  if (!listing) return Fail(listing.error());
  if (options.choice.common.json) {
    PrintLine(Dump(ToJson(*listing)));
  } else {
    PrintListing(*listing, SystemClock().WallNow());
  }
  return ExitCode::Done;
}

Result<ExitCode> RunTaskShow(const TaskChoice& choice) {
  auto desks = OpenDesks(choice.common, choice.shard);
  if (!desks) return Fail(desks.error());
  auto name = OneTask(*desks, choice);
  if (!name) return Fail(name.error());
  auto record = GetTask(*desks, *name);
  if (!record) return Fail(record.error());
  if (choice.common.json) {
    PrintLine(Dump(TaskToJson(name->shard, *record)));
  } else {
    PrintLine(
        TaskToText(name->shard, *record, SystemClock().WallNow(), OutputIsTerminal() ? TerminalWidth() : 0));
  }
  return ExitCode::Done;
}

Result<ExitCode> RunTaskWhy(const TaskChoice& choice) {
  auto desks = OpenDesks(choice.common, choice.shard);
  if (!desks) return Fail(desks.error());
  auto name = OneTask(*desks, choice);
  if (!name) return Fail(name.error());
  auto facts = GatherFacts(*desks, choice, *name);
  if (!facts) return Fail(facts.error());
  const std::vector<std::string> sentences = ExplainTask(*facts);
  if (choice.common.json) {
    PrintLine(
        Dump({{"name", ToString(*name)}, {"state", ToString(facts->record.task.state)}, {"why", sentences}}));
    return ExitCode::Done;
  }
  PrintLine(ToString(*name) + " is " + ToString(facts->record.task.state) + ".");
  for (const std::string& sentence : sentences) PrintLine("  " + EscapeControls(sentence));
  return ExitCode::Done;
}

}  // namespace millrace
