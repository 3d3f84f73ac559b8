#include "coordinator/app/command/shards.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "framework/base/time_text.h"
#include "framework/files/paths.h"
#include "framework/store/mysql/store.h"
#include "framework/store/sqlite/store.h"
#include "framework/threads/thread.h"

namespace millrace::engine {
namespace {

bool IsSqlite(const Shard& shard) { return shard.url.kind == StoreUrl::Kind::Sqlite; }

Result<bool> FileMissing(const Shard& shard) {
  if (!IsSqlite(shard)) return false;
  auto there = PathExists(shard.url.path);
  if (!there) return Fail(there.error().code, shard.store->Describe() + ": " + there.error().message);
  return !*there;
}

// How the store is named on a command line: without it the user would type the address twice.
std::string StoreFlag(const Shard& shard) { return " --store '" + shard.config.url + "'"; }

Status MakeSchema(Shard& shard) {
  auto schema = shard.store->OpenSchema();
  SchemaSpec spec;
  if (shard.config.slices > 0) spec.slices = shard.config.slices;
  BOOST_OUTCOME_TRYV(schema->Apply(spec));
  PrintNote("made the task tables in " + shard.store->Describe());
  return {};
}

Status RestrictTables(Shard& shard) {
  if (shard.config.tables.empty()) return {};
  std::vector<TableInfo> wanted;
  for (const TableName& name : shard.config.tables) {
    const auto found = std::find_if(shard.tables.begin(), shard.tables.end(),
                                    [&](const TableInfo& info) { return info.table == name; });
    if (found == shard.tables.end()) {
      return Fail(ErrorCode::Invalid, "shard " + shard.name + " has no task table '" + name +
                                          "', which the configuration names; run millrace schema apply, or "
                                          "correct shards." +
                                          shard.name + ".tables");
    }
    wanted.push_back(*found);
  }
  shard.tables = std::move(wanted);
  return {};
}

}  // namespace

ShardConfig AsStarted(ShardConfig shard, const Settings& settings) {
  if (shard.password_file.empty()) shard.password_file = settings.password_file;
  if (settings.doorbell && !shard.doorbell) shard.doorbell.emplace();
  return shard;
}

Result<Shards> OpenShards(const Settings& settings, const std::string& only) {
  Shards shards;
  for (const auto& [name, config] : settings.shards) {
    BOOST_OUTCOME_TRY(url, ParseStoreUrl(config.url));
    BOOST_OUTCOME_TRY(store, MakeStore(AsStarted(config, settings), settings.config.engine.lease));
    shards[name] = Shard{name, url, config, std::move(store), {}};
  }
  if (only.empty()) return shards;
  BOOST_OUTCOME_TRYV(PickShard(shards, only));
  std::erase_if(shards, [&](const auto& entry) { return entry.first != only; });
  return shards;
}

Status Reach(Shard& shard, Missing missing) {
  BOOST_OUTCOME_TRY(lacks_file, FileMissing(shard));
  if (!lacks_file) return shard.store->Ping();
  if (missing == Missing::Make) return {};
  return Fail(ErrorCode::Invalid, shard.store->Describe() +
                                      " does not exist: make it with millrace schema apply" +
                                      StoreFlag(shard) + ", or name another with --store");
}

Status ReadTables(Shard& shard, Missing missing) {
  BOOST_OUTCOME_TRY(lacks_file, FileMissing(shard));
  if (lacks_file) {
    BOOST_OUTCOME_TRYV(MakeSchema(shard));
  }
  auto schema = shard.store->OpenSchema();
  if (IsSqlite(shard) && missing == Missing::Make) {
    auto upgraded = schema->Upgrade(UpgradeBy([](const UpgradeStep&) {}));
    if (!upgraded && upgraded.error().code != ErrorCode::NotFound) return Fail(upgraded.error());
  }
  auto tables = schema->Tables();
  if (!tables && tables.error().code == ErrorCode::NotFound) {
    if (!IsSqlite(shard) || missing == Missing::Refuse) {
      return Fail(ErrorCode::Invalid, shard.store->Describe() +
                                          " has no task tables: make them with millrace schema apply" +
                                          StoreFlag(shard));
    }
    BOOST_OUTCOME_TRYV(MakeSchema(shard));
    tables = schema->Tables();
  }
  if (!tables) return Fail(tables.error());
  shard.tables = std::move(*tables);
  return RestrictTables(shard);
}

UpgradeCalls UpgradeBy(std::function<void(const UpgradeStep&)> step) {
  const auto pause = [](Micros time) {
    PrintNote("watching for " + FormatDuration(time) + " whether a worker of the older version beats");
    poll(nullptr, 0, static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(time).count()));
  };
  return {.pause = pause, .step = std::move(step)};
}

Status Prepare(Shard& shard, Missing missing) {
  BOOST_OUTCOME_TRYV(Reach(shard, missing));
  return ReadTables(shard, missing);
}

void ForEachAtOnce(std::size_t count, const std::function<void(std::size_t)>& work) {
  constexpr std::size_t kAtOnce = 8;
  if (count == 0) return;
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<Thread> helpers(std::min(kAtOnce, count) - 1);
  for (Thread& helper : helpers) {
    if (!helper.Start("shards", take)) break;  // the others take its part
  }
  take();
}

Status PrepareToPlan(Shard& shard) {
  BOOST_OUTCOME_TRYV(Prepare(shard, Missing::Refuse));
  return shard.store->OpenSchema()->ReadBeyond(shard.tables);
}

std::map<std::string, Error> PrepareEach(Shards& shards, const std::function<Status(Shard&)>& prepare) {
  std::vector<std::pair<Shard*, Status>> jobs;
  for (auto& [name, shard] : shards) jobs.emplace_back(&shard, Status());
  ForEachAtOnce(jobs.size(), [&](std::size_t i) { jobs[i].second = prepare(*jobs[i].first); });
  std::map<std::string, Error> away;
  for (const auto& [shard, ready] : jobs) {
    if (!ready) away[shard->name] = ready.error();
  }
  return away;
}

std::map<std::string, Error> PrepareEach(Shards& shards, Missing missing) {
  return PrepareEach(shards, [missing](Shard& shard) { return Prepare(shard, missing); });
}

Result<Shard*> PickShard(Shards& shards, const std::string& name) {
  if (name.empty() && shards.size() == 1) return &shards.begin()->second;
  if (const auto found = shards.find(name); found != shards.end()) return &found->second;
  std::vector<std::string> names;
  for (const auto& [known, shard] : shards) names.push_back(known);
  if (name.empty()) {
    return Fail(ErrorCode::Invalid,
                "there are several shards: say which with --shard; they are " + Joined(names));
  }
  return Fail(ErrorCode::Invalid,
              "there is no shard '" + name + "'" + NearestOf(name, names, "; the shards are "));
}

Result<TableName> PickTable(const Shard& shard, std::string_view name) {
  std::vector<std::string> names;
  for (const TableInfo& info : shard.tables) {
    if (info.table == name || (name.empty() && shard.tables.size() == 1)) return info.table;
    names.emplace_back(info.table);
  }
  const std::string known = names.size() > 8 ? names.front() + " … " + names.back() : Joined(names);
  if (name.empty()) {
    return Fail(
        ErrorCode::Invalid,
        "shard " + shard.name + " has several task tables: say which with --table; they are " + known);
  }
  return Fail(ErrorCode::Invalid,
              "shard " + shard.name + " has no task table '" + std::string(name) + "'; it has " + known);
}

Backlog& Backlog::operator+=(const WaitingOverview& tables) {
  for (const HandlerOverview& one : tables.handlers) {
    waiting += std::min(one.waiting.count, kExactBacklog);
    or_more = or_more || one.waiting.more;
    for (const auto& due : {one.oldest_due, one.next_due}) {
      if (due) next_due = std::min(next_due.value_or(*due), *due);
    }
  }
  return *this;
}

Result<std::unique_ptr<Store>> MakeStore(const ShardConfig& shard, Micros lease, Micros connect_timeout) {
  BOOST_OUTCOME_TRY(url, ParseStoreUrl(shard.url));
  StoreOptions options;
  options.password_file = shard.password_file;
  options.lease = lease;
  options.connect_timeout = connect_timeout;
  options.max_transactions = shard.max_transactions;
  if (shard.doorbell)
    options.doorbell = DoorbellAccount{shard.doorbell->account, shard.doorbell->password_file};
  return url.kind == StoreUrl::Kind::Sqlite ? sqlite::OpenStore(url, options)
                                            : mysql::OpenStore(url, options);
}

}  // namespace millrace::engine
