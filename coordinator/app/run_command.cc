#include <poll.h>

#include <optional>
#include <vector>

#include "coordinator/app/cli/errors.h"
#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "coordinator/app/cluster_worker.h"
#include "coordinator/app/mill_host.h"
#include "coordinator/app/settings.h"
#include "coordinator/app/shards.h"
#include "coordinator/app/stop_signals.h"
#include "coordinator/app/worker_flags.h"
#include "framework/base/time_text.h"
#include "framework/store/sqlite/lock.h"

namespace millrace::engine {
namespace {

constexpr int kBetweenTriesMs = 500;
constexpr Micros kBetweenWords = std::chrono::seconds(30);

// Waits for a server that is away, with a word at the beginning and every half minute. Anything else that is
// wrong stays wrong: it ends the wait at once.
Status ReachPatiently(Shard& shard, Missing missing, Micros limit) {
  const BootTime begun = BootClock::now();
  std::optional<BootTime> spoken;
  while (true) {
    auto reached = Reach(shard, missing);
    if (reached || reached.error().code != ErrorCode::Unavailable) return reached;
    const BootTime now = BootClock::now();
    const Micros left = begun + limit - now;
    if (left <= Micros(0)) {
      return Fail(ErrorCode::Unavailable, reached.error().message + "; gave up after " + ElapsedText(limit) +
                                              ": start the server, or wait longer with --wait");
    }
    if (!spoken || now - *spoken >= kBetweenWords) {
      PrintNote("waiting for " + shard.store->Describe() + ", for " + ElapsedText(left) +
                " at most: " + reached.error().message);
      spoken = now;
    }
    if (StopSignalsSeen() > 0) return Fail(ErrorCode::Cancelled, "stopped while waiting for the store");
    poll(nullptr, 0, kBetweenTriesMs);
  }
}

// SQLite takes one worker at a time: the lock is taken before anything in the file is touched.
Status LockSqlite(Shards& shards, std::vector<sqlite::Lock>& locks) {
  for (auto& [name, shard] : shards) {
    if (shard.url.kind != StoreUrl::Kind::Sqlite) continue;
    BOOST_OUTCOME_TRY(lock, sqlite::Lock::Take(shard.url.path));
    locks.push_back(std::move(lock));
  }
  return {};
}

Result<ExitCode> Mill(const MillFlags& flags, const Settings& settings, Missing missing) {
  auto limit = ParseDuration(flags.wait);
  if (!limit) return Fail(ErrorCode::Invalid, "--wait: " + limit.error().message);
  BOOST_OUTCOME_TRY(shards, OpenShards(settings));
  CatchStopSignals();
  std::vector<sqlite::Lock> locks;
  BOOST_OUTCOME_TRYV(LockSqlite(shards, locks));
  for (auto& [name, shard] : shards) {
    BOOST_OUTCOME_TRYV(ReachPatiently(shard, missing, *limit));
    BOOST_OUTCOME_TRYV(ReadTables(shard, missing));
  }
  return HostMill(flags, settings, shards);
}

// They would have no effect.
Status RefuseClusterFlags(const MillFlags& flags) {
  const std::pair<bool, const char*> given[] = {{flags.weight != 1, "--weight"},
                                                {!flags.shards.empty(), "--shards"},
                                                {!flags.tables.empty(), "--tables"},
                                                {flags.no_coordinate, "--no-coordinate"}};
  for (const auto& [is, flag] : given) {
    if (is)
      return Fail(ErrorCode::Invalid, std::string(flag) + " is for a worker of a cluster: give --zk, too");
  }
  return {};
}

}  // namespace

Result<ExitCode> RunRun(const MillFlags& flags) {
  BOOST_OUTCOME_TRY(settings, ResolveSettings(flags.common, Variable, kDefaultStore));
  for (const auto& [name, shard] : settings.shards) {
    PrintNote("store " + shard.url +
              (settings.store_from == "the default" ? " (the default; --store names another)" : ""));
  }
  return Mill(flags, settings, Missing::Make);
}

Result<ExitCode> RunWorker(const MillFlags& flags) {
  BOOST_OUTCOME_TRY(settings, ResolveSettings(flags.common, Variable, ""));
  if (!settings.cluster) {
    BOOST_OUTCOME_TRYV(RefuseClusterFlags(flags));
    return Mill(flags, settings, Missing::Refuse);
  }
  CatchStopSignals();
  return HostClusterWorker(flags, settings);
}

}  // namespace millrace::engine
