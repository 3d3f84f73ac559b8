#include "coordinator/app/doctor.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/command.h"
#include "coordinator/app/command/stop_signals.h"
#include "coordinator/doctor/findings.h"
#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

using doctor::Examination;
using doctor::Finding;
using doctor::Severity;
using nlohmann::ordered_json;

constexpr std::size_t kIndent = 9;  // as wide as `warning` and two blanks

std::string FindingText(const Finding& finding, std::size_t width) {
  std::string title = ToString(finding.severity);
  title.resize(kIndent, ' ');
  std::string text = title + Wrapped(finding.where + ": " + Escape(finding.what), width, kIndent, kIndent);
  if (!finding.remedy.empty())
    text +=
        "\n" + std::string(kIndent, ' ') + Wrapped("→ " + Escape(finding.remedy), width, kIndent, kIndent);
  return text;
}

const char* NameOf(Flavour flavour) {
  switch (flavour) {
    case Flavour::Sqlite:
      return "SQLite";
    case Flavour::Mariadb:
      return "MariaDB";
    case Flavour::Mysql:
      return "MySQL";
  }
  return "";
}

// `what → how it was found`, a line each, of what answered.
std::vector<std::pair<std::string, std::string>> LookedAt(const Examination& seen) {
  std::vector<std::pair<std::string, std::string>> lines;
  for (const doctor::ShardFacts& shard : seen.shards) {
    if (shard.away) continue;
    const auto beating = std::count_if(shard.lives.begin(), shard.lives.end(),
                                       [](const doctor::LifeFacts& life) { return life.beats; });
    lines.emplace_back("shard " + shard.shard,
                       std::string(NameOf(shard.store.flavour)) + " " +
                           shard.store.version.substr(0, shard.store.version.find('-')) + " at " +
                           shard.where + ": " + Count(shard.tables.size(), "task table", "task tables") +
                           ", " + Count(static_cast<std::uint64_t>(beating), "live worker", "live workers") +
                           "; settings, rights, " +
                           (seen.scratch ? "schema, the plan of every statement, " : "statements, ") +
                           "log, transactions, pools and counters, orphans, clock");
  }
  if (seen.tree && !seen.tree->away) {
    const auto own =
        std::find_if(seen.tree->clusters.begin(), seen.tree->clusters.end(),
                     [&](const doctor::ClusterFacts& cluster) { return cluster.name == seen.tree->cluster; });
    lines.emplace_back("ZooKeeper",
                       Count(seen.tree->servers.size(), "server", "servers") + " at " + seen.tree->address +
                           ": quorum, nodes" +
                           (own == seen.tree->clusters.end() ? "" : " (" + WithCommas(own->nodes) + ")") +
                           ", access, leftovers" +
                           (seen.tree->open.empty() ? ", the cluster " + seen.tree->cluster : ""));
  }
  lines.emplace_back("this host", Count(seen.host.plugins.size(), "plugin", "plugins") + ", " +
                                      Count(seen.host.secrets.size(), "secret file", "secret files") +
                                      ", room, clock");
  return lines;
}

std::string Summary(const std::vector<Finding>& findings) {
  std::size_t counts[3] = {};
  for (const Finding& finding : findings) ++counts[static_cast<std::size_t>(finding.severity)];
  std::vector<std::string> parts;
  if (counts[2] > 0) parts.push_back(Count(counts[2], "error", "errors"));
  if (counts[1] > 0) parts.push_back(Count(counts[1], "warning", "warnings"));
  if (counts[0] > 0) parts.push_back(Count(counts[0], "note", "notes"));
  if (counts[1] + counts[2] > 0) return Joined(parts);
  return parts.empty() ? "nothing is wrong" : "nothing is wrong; " + Joined(parts);
}

void Print(const Examination& seen, const std::vector<Finding>& findings) {
  const std::size_t width = std::min<std::size_t>(TerminalWidth(), 100);
  for (const Finding& finding : findings) PrintLine(FindingText(finding, width) + "\n");
  PrintLine("looked at");
  for (const auto& [what, how] : LookedAt(seen)) {
    std::string title = "  " + what;
    title.resize(std::max<std::size_t>(title.size() + 2, 16), ' ');
    PrintLine(title + Wrapped(how, width, title.size(), title.size()));
  }
  if (!seen.scratch) {
    PrintLine(
        "  not looked at: the exact form of the tables and the plans of the statements;\n"
        "  --scratch makes tables of its own for them (it takes CREATE and DROP)");
  }
  PrintLine(Summary(findings));
}

ordered_json ToJson(const Examination& seen, const std::vector<Finding>& findings) {
  ordered_json out{{"findings", ordered_json::array()}, {"looked_at", ordered_json::array()}};
  for (const Finding& finding : findings) {
    out["findings"].push_back({{"severity", ToString(finding.severity)},
                               {"name", finding.name},
                               {"where", finding.where},
                               {"what", finding.what},
                               {"remedy", finding.remedy}});
  }
  for (const auto& [what, how] : LookedAt(seen)) out["looked_at"].push_back({{"what", what}, {"how", how}});
  return out;
}

ExitCode ExitCodeFor(const Examination& seen, const std::vector<Finding>& findings) {
  std::size_t servers = seen.shards.size();
  auto away = static_cast<std::size_t>(
      std::count_if(seen.shards.begin(), seen.shards.end(),
                    [](const doctor::ShardFacts& shard) { return shard.away.has_value(); }));
  if (seen.tree) {
    ++servers;
    away += seen.tree->away ? 1 : 0;
  }
  if (servers > 0 && away == servers) return ExitCode::Unreachable;
  const bool wrong = std::any_of(findings.begin(), findings.end(),
                                 [](const Finding& finding) { return finding.severity != Severity::Note; });
  return wrong ? ExitCode::SomethingFailed : ExitCode::Done;
}

Result<ExitCode> RunDoctor(const DoctorOptions& options) {
  if (options.scratch) CatchStopSignals();  // its tables are dropped before it ends
  BOOST_OUTCOME_TRY(seen, Examine(options, SystemClock()));
  const std::vector<Finding> findings = doctor::Judge(seen);
  if (options.common.json) {
    PrintJson(ToJson(seen, findings));
  } else {
    Print(seen, findings);
  }
  return ExitCodeFor(seen, findings);
}

}  // namespace

void AddDoctor(CLI::App& root, Chosen& chosen) {
  const auto doctor =
      AddCommand(root, chosen, "doctor", "Say what will hurt, and what to do about it; changes nothing",
                 "  millrace doctor --zk zk1:2181,zk2:2181,zk3:2181/jobs\n"
                 "  millrace doctor --store mysql://owner@db1/work --scratch\n"
                 "Exit status: 0 nothing found, notes apart; 1 findings; 3 no server can be reached.",
                 RunDoctor);
  AddFolders(*doctor.app, doctor->common);
  doctor.app->add_flag(
      "--scratch", doctor->scratch,
      "also make tables of its own in each store, compare the schema with them, explain every "
      "statement on them, and drop them again");
}

}  // namespace millrace::engine
