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
  auto settings = ResolveShards(options.common, kDefaultStore);
  if (!settings) return Fail(settings.error());
  auto shards = OpenShards(*settings);
  if (!shards || options.shard.empty()) return shards;
  if (auto picked = PickShard(*shards, options.shard); !picked) return Fail(picked.error());
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
  if (auto good = CheckSpec(options); !good) return Fail(good.error());
  auto shards = ChosenShards(options);
  if (!shards) return Fail(shards.error());
  PrintLine(shards->begin()->second.store->OpenSchema()->Print(SpecOf(options)));
  return ExitCode::Done;
}

Result<ExitCode> RunSchemaApply(const SchemaOptions& options) {
  if (auto good = CheckSpec(options); !good) return Fail(good.error());
  auto shards = ChosenShards(options);
  if (!shards) return Fail(shards.error());
  for (auto& [name, shard] : *shards) {
    if (auto reached = Reach(shard, Missing::Make); !reached) return Fail(reached.error());
    auto schema = shard.store->OpenSchema();
    const SchemaSpec spec = SpecOf(options, *schema);
    if (auto applied = schema->Apply(spec); !applied) return Fail(applied.error());
    PrintLine(shard.store->Describe() + ": " + Count(spec.tables, "task table", "task tables") + " of " +
              Count(spec.slices, "slice", "slices") + " ready");
  }
  return ExitCode::Done;
}

Result<ExitCode> RunSchemaResize(const SchemaOptions& options) {
  if (auto good = CheckSpec(options); !good) return Fail(good.error());
  if (options.slices == 0) return Fail(ErrorCode::Invalid, "give the number of slices with --slices");
  auto shards = ChosenShards(options);
  if (!shards) return Fail(shards.error());
  for (auto& [name, shard] : *shards) {
    if (auto ready = Prepare(shard, Missing::Refuse); !ready) return Fail(ready.error());
    if (!options.table.empty()) {
      if (auto table = PickTable(shard, options.table); !table) return Fail(table.error());
    }
    auto schema = shard.store->OpenSchema();
    for (const TableInfo& info : shard.tables) {
      if (!options.table.empty() && info.table != options.table) continue;
      if (auto resized = schema->Resize(info.table, options.slices); !resized) return Fail(resized.error());
      PrintLine(name + "/" + info.table + ": " + std::to_string(info.slices) + " → " +
                Count(options.slices, "slice", "slices"));
    }
  }
  return ExitCode::Done;
}

Result<ExitCode> RunSchemaUpgrade(const SchemaOptions& options) {
  auto shards = ChosenShards(options);
  if (!shards) return Fail(shards.error());
  for (auto& [name, shard] : *shards) {
    if (auto reached = Reach(shard, Missing::Refuse); !reached) return Fail(reached.error());
    auto was = shard.store->OpenSchema()->Upgrade();
    if (!was) return Fail(was.error());
    const std::string now = "version " + std::to_string(kSchemaVersion);
    PrintLine(
        shard.store->Describe() + ": " +
        (*was == kSchemaVersion ? "up to date, " + now : "version " + std::to_string(*was) + " → " + now));
  }
  return ExitCode::Done;
}

Result<ExitCode> RunSchemaCheck(const SchemaOptions& options) {
  auto shards = ChosenShards(options);
  if (!shards) return Fail(shards.error());
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (auto& [name, shard] : *shards) {
    if (auto ready = Prepare(shard, Missing::Refuse); !ready) return Fail(ready.error());
    auto findings = shard.store->OpenSchema()->Check();
    if (!findings) return Fail(findings.error());
    for (const SchemaFinding& finding : *findings) {
      out.push_back({{"shard", name},
                     {"what", finding.what},
                     {"problem", finding.problem},
                     {"remedy", finding.remedy}});
      if (!options.common.json) {
        PrintError(shard.store->Describe() + ": " + finding.what + ": " + finding.problem + "; " +
                   finding.remedy);
      }
    }
    if (findings->empty() && !options.common.json) {
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
