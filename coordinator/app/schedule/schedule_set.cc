// The commands that change the part `schedules`, as `config set` would: add, pause, resume, remove. Without a
// cluster the file of --config holds the schedules; as `config set` they write no file, but say what to
// write.
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/config/config_document.h"
#include "coordinator/app/config/config_set.h"
#include "coordinator/app/schedule/schedule_book.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/time_text.h"
#include "framework/store/query_check.h"
#include "framework/store/query_pages.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

struct ScheduleAddOptions {
  CommonFlags common;
  std::string name;
  // By their keys in the document, as they were given.
  std::string cron, zone, every, after, at, initial_delay, handler, params, catch_up, overlap, shard, table,
      from_query, key;
  bool paused = false;
  bool replace = false;
  bool force = false;
  bool dry_run = false;
};

struct ScheduleChangeOptions {
  CommonFlags common;
  std::string name;
  bool dry_run = false;
};

constexpr std::size_t kFiringsTold = 3;
constexpr Micros kQueryTried = std::chrono::seconds(5);
constexpr const char* kPart = "schedules";

Result<ordered_json> EntryOf(const ScheduleAddOptions& options) {
  ordered_json entry = ordered_json::object();
  const std::pair<const char*, const std::string&> texts[] = {
      {"cron", options.cron},       {"every", options.every},       {"after", options.after},
      {"at", options.at},           {"zone", options.zone},         {"initial_delay", options.initial_delay},
      {"handler", options.handler}, {"catch_up", options.catch_up}, {"overlap", options.overlap},
      {"shard", options.shard},     {"table", options.table},       {"from_query", options.from_query},
      {"key", options.key}};
  for (const auto& [key, text] : texts) {
    if (!text.empty()) entry[key] = text;
  }
  if (!options.params.empty()) {
    BOOST_OUTCOME_TRYV(CheckParamsFlag(options.params));
    entry["params"] = ordered_json::parse(options.params);
  }
  if (options.paused) entry["paused"] = true;
  if (!options.at.empty()) {
    const auto at = ParseTime(options.at);
    const WallTime now = SystemClock().WallNow();
    if (at && *at <= now)
      return Fail(ErrorCode::Invalid, "--at: " + options.at + " has passed, " + Relative(*at, now) +
                                          ": it would never fire; name a time to come");
  }
  return entry;
}

// The part as the command found it: a cluster's, or that of the file.
Result<ConfigNode> NodeOf(ScheduleBook& book) {
  if (book.cluster() != nullptr) return CurrentNode(*book.cluster()->client, kPart);
  const ordered_json file = AsJson(book.settings().config_text);
  const bool there = file.is_object() && file.contains(kPart);
  return ConfigNode{kPart, there ? JsonText(file[kPart]) : "{}", std::nullopt};
}

// As it would be in force with this text of the part.
Result<std::shared_ptr<const Config>> ConfigWith(ScheduleBook& book, const std::string& text) {
  if (book.cluster() == nullptr) {
    BOOST_OUTCOME_TRYV(ValidateConfigPart(kPart, text, UnknownZones::Refused, LineNumbers::Untold));
    ordered_json file = AsJson(book.settings().config_text);
    if (!file.is_object()) file = ordered_json::object();
    file[kPart] = AsJson(text);
    BOOST_OUTCOME_TRY(config, ParseConfig(JsonText(file, 2),
                                          book.settings().config_file.empty() ? "the configuration"
                                                                              : book.settings().config_file,
                                          UnknownZones::Refused, LineNumbers::Untold));
    return std::make_shared<const Config>(std::move(config));
  }
  BOOST_OUTCOME_TRY(layers, ReadLayers(*book.cluster()->client, book.cluster()->settings));
  layers.SetPart(kPart, text);
  const auto refusal = layers.Refusals().find(kPart);
  if (refusal != layers.Refusals().end()) return Fail(ErrorCode::Invalid, refusal->second);
  return layers.Effective();
}

// Why nothing was changed where a file holds the schedules, and what to do by hand.
Failure ByHand(ScheduleBook& book, const std::string& what) {
  const std::string& file = book.settings().config_file;
  const std::string place = file.empty() ? std::string("the file that you give with --config") : file;
  if (book.cluster() != nullptr) {
    return Fail(ErrorCode::Invalid,
                "nothing was changed: the cluster does not have this schedule, the file of "
                "--config does. In " +
                    place + " " + what);
  }
  return Fail(ErrorCode::Invalid,
              "no cluster is named, and nothing was changed: without one a file holds the schedules. In " +
                  place + " " + what +
                  "\nand start millrace run, or worker, anew with it. Of a cluster give --zk host:port, or "
                  "set MILLRACE_ZK");
}

PartChange ChangeOf(const ScheduleFacts& schedule) {
  PartChange change;
  const auto firings = ComingFirings(schedule, kFiringsTold);
  change.answer["firings"] = ToJson(schedule, firings);
  if (!firings.empty()) change.lines = LinesOf(FiringTable(schedule, firings).Text(0));
  if (schedule.config.rule.timing.Is<FixedDelay>())
    change.lines.push_back("then each time the last has ended: " + RhythmWords(schedule.config.rule.timing));
  if (schedule.config.rule.paused)
    change.lines.push_back("it is paused: nothing fires until millrace schedule resume " + schedule.name);
  return change;
}

Result<ExitCode> TryByHand(const CommonFlags& flags, const ordered_json& entry, const PartChange& change) {
  ordered_json answer{{"part", kPart}, {"dry_run", true}, {"document", entry}};
  answer.update(change.answer);
  PrintAnswer(flags, answer, "it is good; --dry-run has set nothing\n" + Joined(change.lines, "\n"));
  return ExitCode::Done;
}

// Whether its query gives rows with a key. One that takes its time, or whose shard is away, is taken as it
// is.
Status TryQuery(const ScheduleConfig& schedule, ScheduleBook& book) {
  if (schedule.from_query.empty()) return {};
  const auto place = book.PlaceOf(schedule);
  if (!place) return {};
  const auto refuse = [](const Error& why) {
    return Fail(ErrorCode::Invalid, "--from-query: " + why.message + "; to add it all the same, add --force");
  };
  if (const Status fills = CheckFills(schedule.from_query, place->second); !fills)
    return refuse(fills.error());
  QueryPages pages(place->first->store->OpenTransaction(kQueryTried), schedule.from_query,
                   schedule.key->columns(), kMaxBatchRows);
  const auto rows = pages.Next();
  if (rows) return {};
  for (const ErrorCode passing : {ErrorCode::Unavailable, ErrorCode::Conflict, ErrorCode::Unknown}) {
    if (rows.error().code == passing) return {};
  }
  return refuse(rows.error());
}

// What is named and would not be found, so that it would never fire or never run. A shard that is away is not
// waited for to check a table.
Status CheckNames(const ScheduleConfig& schedule, const Config& config, ScheduleBook& book) {
  const std::string nobody = HandlerTrouble(schedule.handler, config, book.handlers());
  if (!nobody.empty()) {
    return Fail(ErrorCode::Invalid,
                "--handler: " + nobody + "; to add it for one that is yet to come, add --force");
  }
  const auto check = [&](const char* flag, const ScheduleConfig& named) -> Status {
    const auto place = book.PlaceOf(named);
    if (place || !IsForPeople(place.error().code)) return {};
    return Fail(ErrorCode::Invalid, std::string(flag) + ": " + place.error().message +
                                        "; to add it for one that is yet to come, add --force");
  };
  ScheduleConfig shard = schedule;
  shard.table.reset();
  if (!schedule.shard.empty()) {
    BOOST_OUTCOME_TRYV(check("--shard", shard));
  }
  if (schedule.table) {
    BOOST_OUTCOME_TRYV(check("--table", schedule));
  }
  return TryQuery(schedule, book);
}

Result<ExitCode> RunScheduleAdd(const ScheduleAddOptions& options) {
  BOOST_OUTCOME_TRY(entry, EntryOf(options));
  BOOST_OUTCOME_TRY(book, ScheduleBook::Open(options.common));
  BOOST_OUTCOME_TRY(node, NodeOf(book));
  BOOST_OUTCOME_TRY(document, DocumentOf(kPart, node.text));
  if (document.contains(options.name) && !options.replace) {
    return Fail(ErrorCode::Conflict, "there is a schedule '" + options.name +
                                         "' already: millrace schedule show " + options.name +
                                         "; to put this one in its place, add --replace");
  }
  document[options.name] = entry;
  const std::string text = JsonText(document, 2);
  BOOST_OUTCOME_TRY(config, ConfigWith(book, text));
  const ScheduleConfig& schedule = config->schedules.at(options.name);
  if (!options.force) {
    BOOST_OUTCOME_TRYV(CheckNames(schedule, *config, book));
  }
  if (const std::string other = SharesKeysWith(options.name, *config); !other.empty()) {
    PrintNote("note: schedule " + other +
              " has the same handler and key: a row that both give is one task, that of the first to fire");
  }
  PartChange change = ChangeOf({.name = options.name, .config = schedule, .now = SystemClock().WallNow()});
  change.dry_run = options.dry_run;
  change.offline = change.yes = change.assembled = true;
  if (book.cluster() != nullptr) return SetPart(*book.cluster(), node, text, options.common, change);
  const ordered_json named{{options.name, entry}};
  if (options.dry_run) return TryByHand(options.common, named, change);
  return ByHand(book, "write\n  \"schedules\": " + JsonText(named));
}

// `change` is made to the entry; nullptr takes it out. `by_hand`: the same, for a person.
Result<ExitCode> ChangeSchedule(const ScheduleChangeOptions& options, ScheduleBook& book,
                                void (*change_entry)(ordered_json&), const std::string& by_hand) {
  BOOST_OUTCOME_TRY(node, NodeOf(book));
  BOOST_OUTCOME_TRY(document, DocumentOf(kPart, node.text));
  if (!document.contains(options.name)) {
    BOOST_OUTCOME_TRYV(book.CheckThere(options.name));
    return ByHand(book, by_hand);  // the file of --config has it, and goes over the cluster's
  }
  if (change_entry != nullptr) {
    change_entry(document[options.name]);
  } else {
    document.erase(options.name);
  }
  if (book.cluster() == nullptr) return ByHand(book, by_hand);
  PartChange change;
  change.dry_run = options.dry_run;
  change.offline = change.yes = change.assembled = true;
  return SetPart(*book.cluster(), node, JsonText(document, 2), options.common, change);
}

// Neither a pause nor a removal ends what has begun: who wants that is told how.
void TellUnderWay(ScheduleBook& book, const std::string& name) {
  const auto schedule = book.ReadOne(name);
  if (!schedule || !schedule->under_way) return;
  PrintNote("note: its fan-out of " + FormatTime(schedule->under_way->firing) +
            " goes on to its end; millrace schedule stop " + name + " ends it now");
}

Result<bool> IsPaused(ScheduleBook& book, const std::string& name) {
  BOOST_OUTCOME_TRYV(book.CheckThere(name));
  return book.config().schedules.at(name).rule.paused;
}

Result<ExitCode> RunSchedulePause(const ScheduleChangeOptions& options) {
  BOOST_OUTCOME_TRY(book, ScheduleBook::Open(options.common));
  BOOST_OUTCOME_TRY(paused, IsPaused(book, options.name));
  if (paused) {
    PrintAnswer(options.common, {{"part", kPart}, {"changes", ordered_json::array()}},
                options.name + " is paused already");
    return ExitCode::Done;
  }
  BOOST_OUTCOME_TRY(code, ChangeSchedule(
                              options, book, [](ordered_json& entry) { entry["paused"] = true; },
                              "set schedules." + options.name + ".paused to true"));
  TellUnderWay(book, options.name);
  return code;
}

Result<ExitCode> RunScheduleResume(const ScheduleChangeOptions& options) {
  BOOST_OUTCOME_TRY(book, ScheduleBook::Open(options.common));
  BOOST_OUTCOME_TRY(paused, IsPaused(book, options.name));
  if (!paused) {
    PrintError("'" + options.name + "' is not paused");
    return ExitCode::SomethingFailed;
  }
  return ChangeSchedule(
      options, book, [](ordered_json& entry) { entry.erase("paused"); },
      "take out schedules." + options.name + ".paused");
}

Result<ExitCode> RunScheduleRemove(const ScheduleChangeOptions& options) {
  BOOST_OUTCOME_TRY(book, ScheduleBook::Open(options.common));
  BOOST_OUTCOME_TRY(code, ChangeSchedule(options, book, nullptr, "take out schedules." + options.name));
  TellUnderWay(book, options.name);
  return code;
}

void AddChange(CLI::App& schedule, Chosen& chosen, const char* name, const char* what, const char* example,
               Result<ExitCode> (*run)(const ScheduleChangeOptions&)) {
  const auto command = AddCommand(schedule, chosen, name, what, example, run);
  AddFolders(*command.app, command->common);
  command.Add("name", command->name, "as the configuration calls it", "NAME")->required();
  command.app->add_flag("--dry-run", command->dry_run, "show what would change, and set nothing");
}

}  // namespace

void AddScheduleChanges(CLI::App& schedule, Chosen& chosen) {
  const auto add = AddCommand(
      schedule, chosen, "add", "Add a schedule to the configuration",
      "  millrace schedule add nightly --cron '0 2 * * *' --zone Europe/Berlin --handler noop\n"
      "  millrace schedule add sync --every 5m --handler http_call --params '{\"full\":false}'\n"
      "  millrace schedule add bills --cron '0 2 1 * *' --handler send_mail --from-query 'SELECT id, email "
      "FROM customers' --key '{id}-{month}'",
      RunScheduleAdd);
  AddFolders(*add.app, add->common);
  add.Add("name", add->name, "lower-case letters, digits, '_', '-' and '.'", "NAME")->required();
  add.Add("--cron", add->cron, "fires by the clock: minute hour day month weekday", "EXPRESSION");
  add.Add("--zone", add->zone, "whose clock; default UTC", "ZONE");
  add.Add("--every", add->every, "or at a fixed rate, such as 5m", "TIME");
  add.Add("--after", add->after, "or so long after the last has ended", "TIME");
  add.Add("--at", add->at, "or once, such as 2026-12-01T02:00:00Z", "TIME");
  add.Add("--handler", add->handler, "the task type", "NAME")->required();
  add.Add("--params", add->params, "JSON object for the handler, up to 64 KiB", "JSON");
  add.Add("--initial-delay", add->initial_delay, "nothing fires in so long from now", "TIME");
  add.Add("--catch-up", add->catch_up, "what was missed: none of it, one firing for all (default), or each",
          "WHICH")
      ->check(CLI::IsMember({"none", "one", "all"}));
  add.Add("--overlap", add->overlap, "skip: not while the last task is in work; default allow", "WHICH")
      ->check(CLI::IsMember({"allow", "skip"}));
  add.Add("--shard", add->shard, "where its tasks go; default: the first", "NAME");
  add.Add("--table", add->table, "which task table; default: the first", "NAME");
  add.Add("--from-query", add->from_query, "a task for each row of a query on the shard's own database",
          "SQL");
  add.Add("--key", add->key, "of each of these tasks, such as {customer_id}-{month}", "TEMPLATE");
  add.app->add_flag("--paused", add->paused, "it fires only once it is resumed");
  add.app->add_flag("--replace", add->replace, "in place of the one that has this name");
  add.app->add_flag("--force", add->force, "also for a handler, shard or table that is not there yet");
  add.app->add_flag("--dry-run", add->dry_run, "check it and show its firings, and set nothing");
  AddChange(schedule, chosen, "pause", "Let it fire no more until it is resumed; what comes due lapses",
            "  millrace schedule pause nightly", RunSchedulePause);
  AddChange(schedule, chosen, "resume", "Let it fire again", "  millrace schedule resume nightly",
            RunScheduleResume);
  AddChange(schedule, chosen, "remove", "Take it out of the configuration; its tasks stay",
            "  millrace schedule remove nightly", RunScheduleRemove);
}

}  // namespace millrace::engine
