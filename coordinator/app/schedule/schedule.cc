// `millrace schedule`: what is done when. The commands that read, and `run`; schedule_set.cc has those that
// change the configuration.
#include <algorithm>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/schedule/schedule_book.h"
#include "coordinator/upkeep/schedule_firings.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

struct ScheduleOptions {
  CommonFlags common;
  std::string name;
  std::size_t next = 5;
};

constexpr std::size_t kMostFirings = 10'000;

// A shard without tables has no rows of schedules either; what others that did not tell have is not known.
bool MayHaveRows(const Error& why) {
  return why.code != ErrorCode::Invalid && why.code != ErrorCode::NotFound;
}

// What was left out, and the exit status that tells of it.
ExitCode TellMissing(const ScheduleBook& book) {
  ExitCode code = ExitCode::Done;
  if (!book.refusal().empty()) {
    PrintError("not in force: " + book.refusal());
    code = ExitCode::SomethingFailed;
  }
  for (const auto& [shard, why] : book.away()) {
    if (!MayHaveRows(why)) {
      PrintNote("note: shard " + shard + ": " + why.message);
      continue;
    }
    PrintError("shard " + shard + (why.code == ErrorCode::Unavailable ? " is away" : " can't be read") +
               ", so what stands of its schedules is not known: " + why.message);
    code = ExitCodeOf(why.code);
  }
  return code;
}

Result<ExitCode> RunScheduleList(const CommonFlags& common) {
  BOOST_OUTCOME_TRY(book, ScheduleBook::Open(common));
  const std::vector<ScheduleFacts> schedules = book.Read();
  ordered_json out{{"schedules", ordered_json::array()}, {"away", AwayJson(book.away())}};
  for (const ScheduleFacts& schedule : schedules) out["schedules"].push_back(ToJson(schedule));
  PrintAnswer(common, out, ListTable(schedules),
              book.cluster() != nullptr
                  ? "no schedule is configured; millrace schedule add makes one"
                  : "no schedule is configured; write them into the file of --config: millrace schedule add "
                    "… --dry-run shows what one would do");
  return TellMissing(book);
}

Result<ExitCode> RunScheduleShow(const ScheduleOptions& options) {
  BOOST_OUTCOME_TRY(book, ScheduleBook::Open(options.common));
  BOOST_OUTCOME_TRY(schedule, book.ReadOne(options.name));
  const auto firings = ComingFirings(schedule, options.next);
  if (options.common.json) {
    ordered_json one = ToJson(schedule);
    one["firings"] = ToJson(schedule, firings);
    PrintJson({{"schedules", ordered_json::array({one})}, {"away", AwayJson(book.away())}});
    return TellMissing(book);
  }
  PrintLine(DetailText(schedule));
  if (!firings.empty()) {
    PrintLine("");
    PrintTable(FiringTable(schedule, firings));
  }
  if (schedule.config.rule.paused)
    PrintNote("it is paused: what comes due lapses until millrace schedule resume " + schedule.name);
  return TellMissing(book);
}

// What a firing would insert, now and beside the rhythm. Its key is that of this very microsecond, so that it
// may be run again.
Result<ExitCode> RunScheduleNow(const ScheduleOptions& options) {
  BOOST_OUTCOME_TRY(book, ScheduleBook::Open(options.common));
  BOOST_OUTCOME_TRYV(book.CheckThere(options.name));
  const ScheduleConfig& schedule = book.config().schedules.at(options.name);
  BOOST_OUTCOME_TRY(place, book.PlaceOf(schedule));
  const auto& [shard, table] = place;
  const auto store = shard->store->OpenSchedules();
  BOOST_OUTCOME_TRY(rows, store->Rows());
  const ScheduledWork work = WorkOf(options.name, schedule, rows.now, table);
  BOOST_OUTCOME_TRY(key, store->RunNow(options.name, {rows.now, table, work}, Actor()));
  if (std::holds_alternative<FanOut>(work)) {
    PrintAnswer(options.common, {{"schedule", options.name}, {"fan_out", FormatTime(rows.now)}},
                "its query is gone through; millrace schedule show " + options.name + " tells how far");
    return ExitCode::Done;
  }
  const std::string name = ToString(TaskName{shard->name, key});
  PrintAnswer(options.common, {{"schedule", options.name}, {"task", name}},
              name + " is submitted; millrace task show " + name);
  return ExitCode::Done;
}

// Of one that is configured no more, too.
Result<ExitCode> RunScheduleStop(const ScheduleOptions& options) {
  BOOST_OUTCOME_TRY(book, ScheduleBook::Open(options.common));
  BOOST_OUTCOME_TRY(stopped, book.StopFanOuts(options.name));
  const bool all = std::none_of(book.away().begin(), book.away().end(),
                                [](const auto& shard) { return MayHaveRows(shard.second); });
  if (stopped == 0 && all) {
    BOOST_OUTCOME_TRYV(book.CheckThere(options.name));
  }
  PrintAnswer(options.common, {{"schedule", options.name}, {"stopped", stopped}},
              stopped == 0 ? "no fan-out of " + options.name +
                                 (all ? " is under way" : " was found in the shards that can be read")
                           : std::to_string(stopped) + (stopped == 1 ? " fan-out of " : " fan-outs of ") +
                                 options.name + " stopped; the tasks that were added stay");
  return TellMissing(book);
}

}  // namespace

void AddScheduleCommands(CLI::App& schedule, Chosen& chosen) {
  const auto list =
      AddCommand(schedule, chosen, "list", "List the schedules: when they fire, and what is wrong",
                 "  millrace schedule list", RunScheduleList);
  AddFolders(*list.app, *list.options);
  const auto show =
      AddCommand(schedule, chosen, "show", "Show a schedule and its next firings, with changes of the clock",
                 "  millrace schedule show nightly --next 400", RunScheduleShow);
  AddFolders(*show.app, show->common);
  show.Add("name", show->name, "as the configuration calls it", "NAME")->required();
  show.Add("--next", show->next, "so many firings", "N")
      ->check(CLI::Range(std::size_t{0}, kMostFirings))
      ->capture_default_str();
  AddScheduleChanges(schedule, chosen);
  const auto run = AddCommand(schedule, chosen, "run", "Submit its task now, beside its rhythm",
                              "  millrace schedule run nightly", RunScheduleNow);
  AddFolders(*run.app, run->common);
  run.Add("name", run->name, "as the configuration calls it", "NAME")->required();
  const auto stop =
      AddCommand(schedule, chosen, "stop", "End its fan-outs that are under way; the rhythm stays",
                 "  millrace schedule stop bills", RunScheduleStop);
  AddFolders(*stop.app, stop->common);
  stop.Add("name", stop->name, "as the configuration calls it, or did", "NAME")->required();
}

}  // namespace millrace::engine
