#include <algorithm>
#include <nlohmann/json.hpp>
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
  std::uint32_t tables = 1;
  std::uint32_t slices = 0;  // 0: as they are, 64 for new ones
  std::string table;         // resize: this one alone
};

Result<Shards> ChosenShards(const SchemaOptions& options) {
  BOOST_OUTCOME_TRY(settings, ResolveShards(options.common, kDefaultStore));
  return OpenShards(settings, options.shard);
}

Status CheckSpec(const SchemaOptions& options) {
  if (options.tables < 1 || options.tables > 1000)
    return Fail(ErrorCode::Invalid, "--tables must be 1 to 1000");
  if (options.slices > kMaxSlices) {
    return Fail(ErrorCode::Invalid, "--slices must be 1 to " + std::to_string(kMaxSlices));
  }
  return {};
}

constexpr std::uint32_t kDefaultSlices = 64;

SchemaSpec SpecOf(const SchemaOptions& options) {
  return SchemaSpec{options.tables, options.slices == 0 ? kDefaultSlices : options.slices};
}

// Without --slices tables that are there keep their number.
SchemaSpec SpecOf(const SchemaOptions& options, SchemaStore& schema) {
  SchemaSpec spec = SpecOf(options);
  if (options.slices > 0) return spec;
  const auto tables = schema.Tables();
  if (tables && !tables->empty()) spec.slices = tables->front().slices;
  return spec;
}

Result<ExitCode> RunSchemaPrint(const SchemaOptions& options) {
  BOOST_OUTCOME_TRYV(CheckSpec(options));
  BOOST_OUTCOME_TRY(shards, ChosenShards(options));
  PrintLine(shards.begin()->second.store->OpenSchema()->Print(SpecOf(options)));
  return ExitCode::Done;
}

Result<ExitCode> RunSchemaApply(const SchemaOptions& options) {
  BOOST_OUTCOME_TRYV(CheckSpec(options));
  BOOST_OUTCOME_TRY(shards, ChosenShards(options));
  for (auto& [name, shard] : shards) {
    BOOST_OUTCOME_TRYV(Reach(shard, Missing::Make));
    auto schema = shard.store->OpenSchema();
    const SchemaSpec spec = SpecOf(options, *schema);
    BOOST_OUTCOME_TRYV(schema->Apply(spec));
    PrintLine(shard.store->Describe() + ": " + Count(spec.tables, "task table", "task tables") + " of " +
              Count(spec.slices, "slice", "slices") + " ready");
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

void AddSlices(const Command<SchemaOptions>& command) {
  command.Add("--slices", command->slices, "load-balance numbers a table; 64 for new ones", "N");
}

void AddSpec(const Command<SchemaOptions>& command) {
  command.Add("--tables", command->tables, "task tables", "N")->capture_default_str();
  AddSlices(command);
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
  AddSlices(resize);
  resize.Add("--table", resize->table, "this table alone", "NAME");
  Add(schema, chosen, "upgrade", "Bring older tables to this version", "  millrace schema upgrade",
      RunSchemaUpgrade);
  Add(schema, chosen, "check", "Compare the live tables and the plans of the hot statements",
      "  millrace schema check --json", RunSchemaCheck, true);
}

}  // namespace millrace::engine
