#include <nlohmann/json.hpp>

#include "coordinator/app/cluster_connection.h"
#include "coordinator/app/commands.h"
#include "coordinator/app/shards.h"
#include "coordinator/app/terminal.h"
#include "coordinator/coordination/json_text.h"

namespace millrace::engine {
namespace {

// The shards of --shard, or all; nothing is connected yet.
Result<Shards> ChosenShards(const SchemaOptions& options) {
  BOOST_OUTCOME_TRY(settings, ResolveShards(options.common, kDefaultStore));
  auto shards = OpenShards(settings);
  if (!shards || options.shard.empty()) return shards;
  BOOST_OUTCOME_TRYV(PickShard(*shards, options.shard));
  std::erase_if(*shards, [&](const auto& entry) { return entry.first != options.shard; });
  return shards;
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

}  // namespace

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

Result<ExitCode> RunSchemaUpgrade(const SchemaOptions& options) {
  BOOST_OUTCOME_TRY(shards, ChosenShards(options));
  for (auto& [name, shard] : shards) {
    BOOST_OUTCOME_TRYV(Reach(shard, Missing::Refuse));
    BOOST_OUTCOME_TRY(was, shard.store->OpenSchema()->Upgrade());
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
  if (options.common.json) {
    PrintLine(JsonText({{"ok", out.empty()}, {"findings", out}}));
  }
  return out.empty() ? ExitCode::Done : ExitCode::SomethingFailed;
}

}  // namespace millrace::engine
