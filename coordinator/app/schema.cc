#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "coordinator/app/cli/progress.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/command/cluster_client.h"
#include "coordinator/app/command/command.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

struct SchemaOptions {
  CommonFlags common;
  std::string shard;
  std::optional<std::uint32_t> tables;  // nullopt: as many as there are, or one
  std::uint32_t slices = 0;             // 0: as they are; for new ones as the first has, or 64
  std::string table;                    // resize: this one alone
};

Result<Shards> ChosenShards(const SchemaOptions& options) {
  BOOST_OUTCOME_TRY(settings, ResolveShards(options.common, kDefaultStore));
  return OpenShards(settings, options.shard);
}

constexpr std::uint32_t kMostTables = 1000;

Status CheckSpec(const SchemaOptions& options) {
  if (options.tables && (*options.tables < 1 || *options.tables > kMostTables))
    return Fail(ErrorCode::Invalid, "--tables must be 1 to " + std::to_string(kMostTables));
  if (options.slices > kMaxSlices) {
    return Fail(ErrorCode::Invalid, "--slices must be 1 to " + std::to_string(kMaxSlices));
  }
  return {};
}

constexpr std::uint32_t kDefaultSlices = 64;

bool IsAmong(const std::vector<TableName>& names, const TableName& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// As many as there are: of numbered ones up to the last.
std::uint32_t StandingTables(const std::vector<TableInfo>& standing) {
  const std::vector<TableName> there = NamesOf(standing);
  const std::vector<TableName> numbered = TableNames(SchemaSpec{kMostTables, kDefaultSlices});
  for (std::uint32_t tables = kMostTables; tables > 1; --tables) {
    if (IsAmong(there, numbered[tables - 1])) return tables;
  }
  return 1;
}

// Those of the standing tables that the command is about.
std::vector<TableInfo> StandingOf(const SchemaSpec& spec, std::vector<TableInfo> standing) {
  const std::vector<TableName> wanted = TableNames(spec);
  std::erase_if(standing, [&](const TableInfo& info) { return !IsAmong(wanted, info.table); });
  return standing;
}

// What flags leave out is as it stands.
SchemaSpec SpecOf(const SchemaOptions& options, const std::vector<TableInfo>& standing) {
  SchemaSpec spec{options.tables.value_or(StandingTables(standing)), options.slices};
  if (spec.slices > 0) return spec;
  const std::vector<TableInfo> wanted = StandingOf(spec, standing);
  spec.slices = !wanted.empty()     ? wanted.front().slices
                : !standing.empty() ? standing.front().slices
                                    : kDefaultSlices;
  return spec;
}

// Where --slices is given every table has that number.
Status CheckStandingSlices(const std::string& shard, std::uint32_t slices,
                           const std::vector<TableInfo>& standing) {
  for (const TableInfo& info : standing) {
    if (info.slices == slices) continue;
    return Fail(ErrorCode::Conflict, shard + "/" + info.table + " has " +
                                         Count(info.slices, "slice", "slices") + ", not " +
                                         std::to_string(slices) +
                                         "; leave --slices out, or change that with millrace schema resize");
  }
  return {};
}

// `64 slices`, or `64 to 96 slices` where they differ.
std::string SlicesText(const SchemaSpec& spec, const std::vector<TableInfo>& standing) {
  std::uint32_t least = standing.size() < spec.tables ? spec.slices : standing.front().slices;
  std::uint32_t most = least;
  for (const TableInfo& info : standing) {
    least = std::min(least, info.slices);
    most = std::max(most, info.slices);
  }
  return (least < most ? std::to_string(least) + " to " : "") + Count(most, "slice", "slices");
}

Status ApplySchema(const SchemaOptions& options, Shard& shard) {
  BOOST_OUTCOME_TRYV(Reach(shard, Missing::Make));
  auto schema = shard.store->OpenSchema();
  const auto tables = schema->Tables();  // of a schema that is not there yet, or not ours, Apply tells
  const bool passes =
      !tables && (tables.error().code == ErrorCode::Unavailable || tables.error().code == ErrorCode::Unknown);
  if (passes) return Fail(tables.error());
  std::vector<TableInfo> standing = tables ? *tables : std::vector<TableInfo>();
  const SchemaSpec spec = SpecOf(options, standing);
  standing = StandingOf(spec, std::move(standing));
  if (options.slices > 0) {
    BOOST_OUTCOME_TRYV(CheckStandingSlices(shard.name, options.slices, standing));
  }
  BOOST_OUTCOME_TRYV(schema->Apply(spec));
  PrintLine(shard.store->Describe() + ": " + Count(spec.tables, "task table", "task tables") + " of " +
            SlicesText(spec, standing) + " ready");
  return {};
}

Result<ExitCode> RunSchemaPrint(const SchemaOptions& options) {
  BOOST_OUTCOME_TRYV(CheckSpec(options));
  BOOST_OUTCOME_TRY(shards, ChosenShards(options));
  PrintLine(shards.begin()->second.store->OpenSchema()->Print(SpecOf(options, {})));
  return ExitCode::Done;
}

Result<ExitCode> RunSchemaApply(const SchemaOptions& options) {
  BOOST_OUTCOME_TRYV(CheckSpec(options));
  BOOST_OUTCOME_TRY(shards, ChosenShards(options));
  for (auto& [name, shard] : shards) {
    BOOST_OUTCOME_TRYV(ApplySchema(options, shard));
  }
  return ExitCode::Done;
}

Result<ExitCode> RunSchemaResize(const SchemaOptions& options) {
  BOOST_OUTCOME_TRYV(CheckSpec(options));
  if (options.slices == 0) return Fail(ErrorCode::Invalid, "give the number of slices with --slices");
  BOOST_OUTCOME_TRY(shards, ChosenShards(options));
  for (auto& [name, shard] : shards) {
    BOOST_OUTCOME_TRYV(Prepare(shard, Missing::Refuse));
    if (!options.table.empty()) {
      BOOST_OUTCOME_TRYV(PickTable(shard, options.table));
    }
    auto schema = shard.store->OpenSchema();
    for (const TableInfo& info : shard.tables) {
      if (!options.table.empty() && info.table != options.table) continue;
      BOOST_OUTCOME_TRYV(schema->Resize(info.table, options.slices));
      PrintLine(name + "/" + info.table + ": " + std::to_string(info.slices) + " → " +
                Count(options.slices, "slice", "slices"));
    }
  }
  return ExitCode::Done;
}

// What an upgrade's rows take, as it is told on a terminal and in a log: by what the first of them took.
class CopyReport {
 public:
  void Note(const UpgradeStep& step) {
    if (step.copied == 0) {
      line_.Clear();
      began_ = BootClock::now();
      if (step.rows == 0) return;
      PrintNote(step.table + ": about " + Count(step.rows, "row", "rows") + " to copy");
      told_ = false;
      return;
    }
    const auto passed = std::chrono::duration<double>(BootClock::now() - began_).count();
    const double rate = static_cast<double>(step.copied) / std::max(passed, 0.001);
    const std::string left = FormatDuration(Left(step.rows - step.copied, rate));
    if (!std::exchange(told_, true) && step.rows > step.copied) {
      PrintNote(step.table + ": some " + left + ", by the first " + Count(step.copied, "row", "rows"));
    }
    line_.Show(step.table + ": " + WithCommas(step.copied) + " of " + WithCommas(step.rows) + " rows, " +
                   left + " left",
               BootClock::now());
  }

 private:
  static Micros Left(std::uint64_t rows, double rate) {
    return std::chrono::seconds(1 + static_cast<std::int64_t>(static_cast<double>(rows) / rate));
  }

  ProgressLine line_{ErrorIsTerminal()};
  BootTime began_{};
  bool told_ = false;  // how long it will take
};

Result<ExitCode> RunSchemaUpgrade(const SchemaOptions& options) {
  BOOST_OUTCOME_TRY(shards, ChosenShards(options));
  for (auto& [name, shard] : shards) {
    BOOST_OUTCOME_TRYV(Reach(shard, Missing::Refuse));
    CopyReport report;
    BOOST_OUTCOME_TRY(was, shard.store->OpenSchema()->Upgrade(
                               UpgradeBy([&](const UpgradeStep& step) { report.Note(step); })));
    const std::string now = "version " + std::to_string(kSchemaVersion);
    PrintLine(
        shard.store->Describe() + ": " +
        (was == kSchemaVersion ? "up to date, " + now : "version " + std::to_string(was) + " → " + now));
  }
  return ExitCode::Done;
}

Result<ExitCode> RunSchemaCheck(const SchemaOptions& options) {
  BOOST_OUTCOME_TRY(shards, ChosenShards(options));
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (auto& [name, shard] : shards) {
    BOOST_OUTCOME_TRYV(Prepare(shard, Missing::Refuse));
    BOOST_OUTCOME_TRY(findings, shard.store->OpenSchema()->Check());
    for (const SchemaFinding& finding : findings) {
      out.push_back({{"shard", name},
                     {"what", finding.what},
                     {"problem", finding.problem},
                     {"remedy", finding.remedy}});
      if (!options.common.json) {
        PrintError(shard.store->Describe() + ": " + finding.what + ": " + finding.problem + "; " +
                   finding.remedy);
      }
    }
    if (findings.empty() && !options.common.json) {
      PrintLine(shard.store->Describe() + ": " + Count(shard.tables.size(), "task table", "task tables") +
                ", version " + std::to_string(kSchemaVersion) + ": as it should be");
    }
  }
  if (options.common.json) PrintJson({{"ok", out.empty()}, {"findings", out}});
  return out.empty() ? ExitCode::Done : ExitCode::SomethingFailed;
}

Command<SchemaOptions> Add(CLI::App& schema, Chosen& chosen, const char* name, const char* what,
                           const char* example, Result<ExitCode> (*run)(const SchemaOptions&),
                           bool json = false) {
  const auto command = AddCommand(schema, chosen, name, what, example, run, {.json = json});
  command.Add("--shard", command->shard, "this shard alone", "NAME");
  return command;
}

void AddSlices(const Command<SchemaOptions>& command, const char* what) {
  command.Add("--slices", command->slices, what, "N");
}

void AddSpec(const Command<SchemaOptions>& command) {
  command.Add("--tables", command->tables, "task tables; default: as many as there are, or 1", "N");
  AddSlices(command, "load-balance numbers a table; default: as it has, as the first has, or 64");
}

}  // namespace

void AddSchemaCommands(CLI::App& schema, Chosen& chosen) {
  AddSpec(Add(schema, chosen, "print", "Print the DDL",
              "  millrace schema print --store mysql://u@h/d > schema.sql", RunSchemaPrint));
  AddSpec(Add(schema, chosen, "apply", "Make what is missing",
              "  millrace schema apply --store mysql://millrace@db1/work --slices 64", RunSchemaApply));
  const auto resize =
      Add(schema, chosen, "resize",
          "Change the number of slices a table under load; a cluster's leader sees to the rows",
          "  millrace schema resize --slices 96", RunSchemaResize);
  AddSlices(resize, "load-balance numbers a table");
  resize.Add("--table", resize->table, "this table alone", "NAME");
  Add(schema, chosen, "upgrade", "Bring older tables to this version", "  millrace schema upgrade",
      RunSchemaUpgrade);
  Add(schema, chosen, "check", "Compare the live tables and the plans of the hot statements",
      "  millrace schema check --json", RunSchemaCheck, true);
}

}  // namespace millrace::engine
