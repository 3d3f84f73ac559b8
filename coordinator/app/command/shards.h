// The shards that a command works on. The one place that names the store adapters.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/app/command/settings.h"
#include "framework/base/result.h"
#include "framework/config/config.h"
#include "framework/store/store.h"
#include "framework/store/url.h"

namespace millrace::engine {

struct Shard {
  std::string name;
  StoreUrl url;
  ShardConfig config;
  std::shared_ptr<Store> store;
  std::vector<TableInfo> tables;  // those that the configuration and the schema name; see ReadTables
};

using Shards = std::map<std::string, Shard>;

enum class Missing {
  Refuse,  // a SQLite file or schema that does not exist is an error
  Make,    // SQLite: it is made, and migrated; a server's schema stays the operator's
};

// With what this process was started with, where the shard's own configuration does not say.
ShardConfig AsStarted(ShardConfig shard, const Settings& settings);

// Opens every shard, or that of --shard, without touching a connection.
Result<Shards> OpenShards(const Settings& settings, const std::string& only = "");
// Connects, and says clearly what is wrong: Unavailable, Invalid. A missing SQLite file: see Missing.
Status Reach(Shard& shard, Missing missing);
// Fills `tables`. Invalid with what to type where the schema was never applied, or lacks a configured table.
Status ReadTables(Shard& shard, Missing missing);
// What a schema's upgrade tells goes to `step`; between two looks at the beats of workers it sleeps.
UpgradeCalls UpgradeBy(std::function<void(const UpgradeStep&)> step);
// Reach and ReadTables.
Status Prepare(Shard& shard, Missing missing);
// Prepare with nothing missing, and what stands beyond the tables' slices: for whoever names every slice.
Status PrepareToPlan(Shard& shard);
// `work` for 0 … count-1, several at once, in threads of its own and the caller's: what waits for a server
// that is away holds up no other. Returns when all are done.
void ForEachAtOnce(std::size_t count, const std::function<void(std::size_t)>& work);
// Those that are away cost the time of one. By name, those that it failed for.
std::map<std::string, Error> PrepareEach(Shards& shards, const std::function<Status(Shard&)>& prepare);
std::map<std::string, Error> PrepareEach(Shards& shards, Missing missing);

// The shard by name; the only one where the name is empty.
Result<Shard*> PickShard(Shards& shards, const std::string& name);
// The shard's table by name; the only one where the name is empty.
Result<TableName> PickTable(const Shard& shard, std::string_view name);

// The waiting tasks of tables: bounded, nothing is counted whole.
struct Backlog {
  std::uint64_t waiting = 0;
  bool or_more = false;              // `waiting` is a bound from below
  std::optional<WallTime> next_due;  // of the first of them
  Backlog& operator+=(const WaitingOverview& tables);
};

// A store by its URL; touches no connection. Invalid for a URL of an unknown kind.
Result<std::unique_ptr<Store>> MakeStore(const ShardConfig& shard, Micros lease,
                                         Micros connect_timeout = StoreOptions().connect_timeout);

}  // namespace millrace::engine
