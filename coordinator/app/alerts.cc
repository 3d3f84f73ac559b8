// `millrace alerts`: what is told to whom, and whether it arrives.
#include <algorithm>

#include "coordinator/alerts/alert_shard.h"
#include "coordinator/alerts/notice.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/app/task/task_lookup.h"
#include "framework/base/escape.h"
#include "framework/base/suggest.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

struct AlertTestOptions {
  CommonFlags common;
  std::string name;
  std::string shard;
  std::string wait = "30s";
};

std::string AddresseesText(const AlertConfig& alert) {
  std::vector<std::string> all = alert.mail;
  if (!alert.webhook.empty()) all.insert(all.begin(), alert.webhook);
  return Joined(all, " ");
}

StoresByShard Answering(const TaskShards& open) {
  StoresByShard stores;
  for (const auto& [name, shard] : open.shards) {
    if (!open.away.contains(name)) stores[name] = shard.store;
  }
  return stores;
}

// One that does not answer is away from now on.
std::map<std::string, Unsent> UnsentMessages(TaskShards& open, BootTime now) {
  std::map<std::string, Unsent> unsent;
  for (const auto& [name, store] : Answering(open)) {
    AlertShard shard(name, store);
    Observation seen;
    const Status observed = shard.Observe({}, {}, now, seen);
    if (!observed) open.away[name] = observed.error();
    if (observed && shard.unsent().Any()) unsent[name] = shard.unsent();
  }
  return unsent;
}

std::string SinceOf(const SaidAlert& said) {
  return said.firing && said.since != WallTime{} ? FormatTime(said.since) : "";
}

// `all_told`: every shard has answered; otherwise one that is away may have said it last.
ordered_json AlertJson(const std::string& name, const AlertConfig& alert, const SaidAlert& said,
                       bool all_told, BootTime now) {
  const std::string since = SinceOf(said);
  return {{"alert", name},
          {"kind", WordOf(alert.kind)},
          {"firing", (said.firing || all_told) ? ordered_json(said.firing) : ordered_json()},
          {"since", since.empty() ? ordered_json() : ordered_json(since)},
          {"count", said.firing ? ordered_json(said.count) : ordered_json()},
          {"messages", said.number},
          {"last_fired_seconds_ago",
           said.fired_at
               ? ordered_json(std::chrono::duration_cast<std::chrono::seconds>(now - *said.fired_at).count())
               : ordered_json()},
          {"mail", alert.mail},
          {"webhook", alert.webhook}};
}

std::vector<std::string> AlertRow(const std::string& name, const AlertConfig& alert, const SaidAlert& said,
                                  bool all_told, BootTime now) {
  const std::string since = SinceOf(said);
  const std::string state = said.firing ? "firing" + (since.empty() ? "" : " since " + since)
                            : all_told  ? "quiet"
                                        : "?";
  const std::string told = said.fired_at ? ElapsedText(now - *said.fired_at) + " ago"
                           : all_told    ? "never"
                                         : "?";
  return {name, WordOf(alert.kind), state, told, AddresseesText(alert)};
}

Result<ExitCode> RunAlertsList(const CommonFlags& common) {
  BOOST_OUTCOME_TRY(open, OpenTaskShards(common, ""));
  const BootTime now = BootClock::now();
  const auto unsent = UnsentMessages(open, now);
  const StoresByShard stores = Answering(open);
  const bool all_told = open.away.empty();
  ordered_json out{{"alerts", ordered_json::array()}, {"unsent", ordered_json::array()}};
  TextTable table{{{"alert"}, {"kind"}, {"state"}, {"last told"}, {"to"}}, {}};
  for (const auto& [name, alert] : open.settings.config.alerts) {
    const SaidAlert said = LastSaid(stores, name, now);
    out["alerts"].push_back(AlertJson(name, alert, said, all_told, now));
    table.rows.push_back(AlertRow(name, alert, said, all_told, now));
  }
  for (const auto& [shard, one] : unsent)
    out["unsent"].push_back({{"shard", shard}, {"failed", one.failed}, {"tries_again", one.tries_again}});
  out["away"] = AwayJson(open.away);
  PrintAnswer(common, out, table,
              "no alert is configured; conf/README.md says how: the part alerts of the configuration");
  for (const std::string& trouble : AlertTroubles(open.settings.config)) PrintNote("note: " + trouble);
  for (const auto& [shard, one] : unsent) {
    for (const std::string& trouble : TroublesOf(one, shard)) PrintNote(trouble);
  }
  return TellAway(open.away, "what shard ", " has said of alerts is not known");
}

Result<AlertConfig> AlertNamed(const Config& config, const std::string& name) {
  const auto found = config.alerts.find(name);
  if (found != config.alerts.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [alert, alert_config] : config.alerts) known.push_back(alert);
  return Fail(ErrorCode::NotFound,
              "no alert is called '" + Escape(name) + "'" + DidYouMean(name, known) +
                  (known.empty() ? ": none is configured" : "; there are " + Joined(known)));
}

// What has become of a message: an end, or the first failure, which is as good for a test.
struct Arrival {
  std::string to;
  TaskName task;
  bool ended = false;
  bool arrived = false;
  std::string why = {};
};

Status LookAt(TaskShards& open, Arrival& arrival) {
  BOOST_OUTCOME_TRY(record, GetTask(open, arrival.task));
  const Task& task = record.task;
  arrival.why = task.last_error;
  arrival.arrived = task.state == TaskState::Succeeded;
  arrival.ended = arrival.arrived || task.state == TaskState::Failed || task.state == TaskState::Cancelled;
  if (arrival.arrived || task.state == TaskState::Cancelled) return {};
  if (!arrival.ended && task.failures == 0) return {};
  arrival.ended = true;  // later tries would only tell the same, and a test is to leave no trouble behind
  (void)open.Operations(arrival.task.shard)
      .Apply(TaskAction::Cancel, arrival.task.key.table, std::vector{arrival.task.key.id}, Actor());
  return {};
}

// Nobody who could send a message has registered there, or all that did have ended.
bool IsDeserted(Store& store) {
  const auto peers = store.OpenIncarnations()->Peers();
  return peers && std::none_of(peers->begin(), peers->end(),
                               [](const PeerBeat& peer) { return peer.beat.has_value(); });
}

// `limit`: for so long its outcome is waited for.
Result<std::vector<Arrival>> SendTest(TaskShards& open, const std::string& name, const AlertConfig& alert,
                                      const std::string& only, Micros limit) {
  Notice notice{.alert = name, .number = 1, .test = true, .from = Actor()};
  notice.at = notice.since = SystemClock().WallNow();
  notice.number = static_cast<std::uint64_t>(notice.at.time_since_epoch().count()) % 10'000'000'000;
  std::vector<NewTask> tasks = TasksOf(notice, alert);
  std::vector<std::string> deserted;
  for (auto& [shard_name, shard] : open.shards) {
    if (open.away.contains(shard_name) || (!only.empty() && only != shard_name) || shard.tables.empty())
      continue;
    if (limit > Micros(0) && IsDeserted(*shard.store)) {
      deserted.push_back(shard_name);
      continue;
    }
    const TableName& table = shard.tables.front().table;
    BOOST_OUTCOME_TRY(report, open.Operations(shard_name).Submit(table, tasks));
    std::vector<Arrival> arrivals;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const std::string& key = tasks[i].biz_key;
      arrivals.push_back({key.substr(key.rfind('/') + 1), {shard_name, {table, report.ids[i]}}});
    }
    return arrivals;
  }
  if (deserted.empty()) return Fail(ErrorCode::Unavailable, "no shard answers, so that nothing can be sent");
  return Fail(ErrorCode::NotFound,
              "no worker is there that would send it: none has registered in shard " + Joined(deserted) +
                  ". Start one: millrace run, or millrace worker (--wait 0s leaves it to the next one)");
}

Status WaitFor(TaskShards& open, std::vector<Arrival>& arrivals, Micros limit) {
  constexpr Micros kBetweenLooks = std::chrono::milliseconds(100);
  const BootTime begun = BootClock::now();
  while (StopSignalsSeen() == 0) {
    bool all = true;
    for (Arrival& arrival : arrivals) {
      if (!arrival.ended) {
        BOOST_OUTCOME_TRYV(LookAt(open, arrival));
      }
      all = all && arrival.ended;
    }
    if (all || BootClock::now() - begun >= limit) return {};
    RestUnlessStopped(kBetweenLooks);
  }
  return {};
}

Result<ExitCode> RunAlertsTest(const AlertTestOptions& options) {
  BOOST_OUTCOME_TRY(limit, ReadDuration("--wait", options.wait));
  BOOST_OUTCOME_TRY(open, OpenTaskShards(options.common, options.shard));
  BOOST_OUTCOME_TRY(alert, AlertNamed(open.settings.config, options.name));
  CatchStopSignals();
  BOOST_OUTCOME_TRY(arrivals, SendTest(open, options.name, alert, options.shard, limit));
  BOOST_OUTCOME_TRYV(WaitFor(open, arrivals, limit));
  ordered_json messages = ordered_json::array();
  TextTable table{{{"to"}, {"task"}, {"outcome"}}, {}};
  const bool left = limit == Micros(0);  // to whoever sends it
  bool all = true;
  for (const Arrival& arrival : arrivals) {
    const std::string task = ToString(arrival.task);
    const std::string waits = left ? "waits" : "still waits after " + FormatDuration(limit);
    const std::string why = arrival.arrived ? "sent"
                            : arrival.ended ? "not sent: " + arrival.why
                                            : waits + ": millrace task why " + task;
    all = all && (arrival.arrived || (left && !arrival.ended));
    messages.push_back({{"to", arrival.to}, {"task", task}, {"sent", arrival.arrived}, {"why", arrival.why}});
    table.rows.push_back({arrival.to, task, why});
  }
  PrintAnswer(options.common, {{"messages", std::move(messages)}}, table, "");
  return all ? ExitCode::Done : ExitCode::SomethingFailed;
}

}  // namespace

void AddAlertCommands(CLI::App& alerts, Chosen& chosen) {
  AddCommand(alerts, chosen, "list", "List the alerts: which fire, and when they were told last",
             "  millrace alerts list", RunAlertsList);
  const auto test =
      AddCommand(alerts, chosen, "test", "Send a message of an alert now, and wait for its outcome",
                 "  millrace alerts test failed", RunAlertsTest);
  test.Add("name", test->name, "the alert, as the configuration calls it", "NAME")->required();
  test.Add("--shard", test->shard, "send it in this shard; default: the first that has workers", "S");
  test.Add("--wait", test->wait, "for the outcome, at most; a worker must run, but for 0s", "DURATION")
      ->capture_default_str();
}

}  // namespace millrace::engine
