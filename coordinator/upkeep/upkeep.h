// What the shards need whether or not there is a leader: the upkeep of each, and what they have read
// together, which is what a leader plans with.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "coordinator/upkeep/batches.h"
#include "coordinator/upkeep/seen_lives.h"
#include "coordinator/upkeep/shard_upkeep.h"
#include "coordinator/upkeep/table_catalog.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

struct TableFindings {
  std::shared_ptr<const TableCatalog> catalog;  // null: no shard is known yet
  std::vector<std::string> unrunnable;          // `shard: handler`: due rows whose type no worker runs
  std::vector<std::string> troubles;            // what keeps the leader from planning, one sentence each
  // The shards that this process can't read, whether it leads or stands for it; nullopt: not known, of one at
  // least.
  std::optional<std::vector<std::string>> unread;
  LivesByShard lives = {};  // of every shard that is configured; read where limits are divided
};

// Shards that the configuration names and that this process can't look into.
struct UnopenedShards {
  std::map<std::string, std::string> refused;  // by name: why
  bool others = false;                         // there may be more: the configuration itself is refused
};

// Update by one thread; Findings by any.
class Upkeep {
 public:
  struct Parts {
    std::function<StoresByShard()> shards;
    std::function<std::shared_ptr<const Config>()> config;
    std::function<bool()> leading;
    std::function<std::shared_ptr<const Ownership>()> ownership;
    std::function<void()> changed;  // Findings() says something new; called by Update
    // How often each shard is looked at: new tables are planned within it, and within half a minute where a
    // log that is followed leaves them out. A new configuration is followed at once.
    Micros round = std::chrono::seconds(2);
    std::function<UnopenedShards()> unopened = [] { return UnopenedShards(); };
    std::function<bool()> standing = [] { return false; };  // a candidate for the leader
    std::function<ScheduleDuty()> schedules = [] { return ScheduleDuty(); };
    std::function<std::optional<OpenBreakers>()> breakers = nullptr;  // see ShardUpkeep::Parts
    // Whether it is known what is to be kept; while it is not, nothing is pruned.
    std::function<bool()> prunes = [] { return true; };
    // Whether limits are divided, of whichever configuration they are: then it reads who lives.
    std::function<bool()> divides = [] { return false; };
  };

  explicit Upkeep(Parts parts) : parts_(std::move(parts)) {}

  // Follows the shards: starts the upkeep of new ones, stops that of shards that are gone, and waits for
  // none. Cheap where nothing changed; to be called twice a second.
  void Update();
  // False: a thread is held up by a server that does not answer, for longer than a second. It uses
  // what this was made of, so the process must end by std::_Exit.
  [[nodiscard]] bool Stop();
  // As of the last Update.
  TableFindings Findings() const;
  // Whether a worker of this process that has been idle so long may end, as far as batches go; see
  // coordinator/upkeep/batches.h. Thread-safe.
  bool MayEnd(const IdleSpan& idle) { return batches_.MayEnd(idle); }
  // How the tasks of the shards stand, where this process leads or is alone. Thread-safe.
  void Measure(Gauges& gauges) const { standings_.Measure(gauges, BootClock::now()); }

 private:
  void Retire(const StoresByShard& staying);
  bool Reap();
  void Hire(const StoresByShard& shards);
  void FollowConfig();
  TableFindings Gather() const;
  std::optional<std::vector<std::string>> Unread(const UnopenedShards& unopened) const;
  void Warn(bool no_shard);
  void Publish(TableFindings findings);

  const Parts parts_;
  Standings standings_;
  ScheduleBoard board_;
  Batches batches_{parts_.leading};
  std::map<std::string, std::unique_ptr<ShardUpkeep>> shards_;
  std::shared_ptr<const Config> followed_;
  std::vector<std::unique_ptr<ShardUpkeep>> retired_;  // asked to stop, and not waited for
  std::set<std::string> no_thread_;                    // shards for which there was none, the last time
  bool no_batches_ = false;                            // no thread for batches, and that was told
  bool no_shard_ = false;                              // while this process leads
  mutable Mutex mutex_;
  TableFindings findings_ MILLRACE_GUARDED_BY(mutex_);
};

}  // namespace millrace::engine
