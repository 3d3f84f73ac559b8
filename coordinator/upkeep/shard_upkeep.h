// The upkeep of one shard, on a thread with a connection of its own, so that a shard that is slow or away
// holds up nobody else: reads its task tables, gives them as many slices as the configuration wants, removes
// what nobody needs any more, and sees to what nobody looks at. It works only while this process leads, or is
// without a leader; while it is a candidate it finds out now and then whether it could.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "coordinator/upkeep/breaker_rows.h"
#include "coordinator/upkeep/leftovers.h"
#include "coordinator/upkeep/schedules.h"
#include "coordinator/upkeep/seen_lives.h"
#include "coordinator/upkeep/standings.h"
#include "framework/base/mutex.h"
#include "framework/base/result.h"
#include "framework/config/config.h"
#include "framework/store/store.h"
#include "framework/threads/signal.h"
#include "framework/threads/thread.h"

namespace millrace::engine {

// Thread-safe.
class ShardUpkeep {
 public:
  struct Parts {
    std::string name;
    std::shared_ptr<Store> store;
    std::function<bool()> leading;
    std::function<std::shared_ptr<const Config>()> config;
    std::function<std::shared_ptr<const Ownership>()> ownership;  // what the plan says; null: not known yet
    Micros round{};                                               // how often it looks
    std::function<bool()> standing = [] { return false; };        // a candidate for the leader
    Standings* standings = nullptr;  // what it reads of the tasks; null: nobody asks
    std::function<ScheduleDuty()> schedules = [] { return ScheduleDuty(); };
    // Of its own worker; null: a cluster's nodes say it. nullopt: not known yet.
    std::function<std::optional<OpenBreakers>()> breakers = nullptr;
    ScheduleBoard* board = nullptr;                        // of all shards' schedules; null: it has none
    std::function<bool()> divides = [] { return false; };  // a leader divides limits, and asks who lives
    std::function<bool()> prunes = [] { return true; };    // it is known what is to be kept
  };

  explicit ShardUpkeep(Parts parts);
  ~ShardUpkeep() { Stop(); }

  Status Start();
  void Stop();
  // Asks it to stop, and does not wait. True: it has stopped, and Stop has nothing to wait for. A server that
  // does not answer may hold it in a statement for long.
  bool AskToStop();
  // Begins a round at once: what it goes by has changed.
  void LookNow();
  const std::shared_ptr<Store>& store() const { return parts_.store; }
  // The task tables as they were read last; nullopt: never since this process leads.
  std::optional<std::vector<TableInfo>> Tables() const;
  // The task types with due rows that no worker runs; sorted.
  std::vector<std::string> Unrunnable() const;
  // Whether it could be read the last time which tables it has; nullopt: not tried since this process stands.
  std::optional<bool> Readable() const;
  // What keeps its schedules from firing; one sentence each.
  std::vector<std::string> ScheduleTroubles() const;
  // Why finished tasks of some types are not pruned.
  std::vector<std::string> PruneTroubles() const;
  // Why not all of its tables are known as they are now; empty: they are.
  std::string Trouble() const;
  // Who was alive in it when it was asked last, where limits are divided.
  SeenLives Lives() const;
  // Why fan-outs stand still, one sentence each.
  std::vector<std::string> FanOutTroubles() const;

 private:
  struct Hands;  // what it has open in the shard while it works there

  void Run();
  bool Round(Hands& hands, bool asked);
  std::optional<bool> FollowTables(Hands& hands, BootTime begun, bool seldom);
  bool UnchangedSince(std::optional<BootTime> read) const;
  ShardConfig Wanted() const;
  void Try();
  void KeepPruneTroubles(std::vector<std::string> troubles);
  void KeepReadable(std::optional<bool> readable);
  bool ReadTables(SchemaStore& schema, bool beyond);
  std::string ReadBeyond(SchemaStore& schema, std::vector<TableInfo>& tables, bool now);
  void Note(const std::string& trouble);
  void Forget();
  void RunFanOuts(Hands& hands, const std::vector<TableInfo>& tables);
  void Prune(Hands& hands, const std::vector<TableName>& tables);
  bool ReadLives(Hands& hands);
  void ReadStanding(Hands& hands, const std::vector<TableName>& tables, BootTime now);

  const Parts parts_;
  const std::unique_ptr<SchedulesThread> schedules_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> stopped_{true};
  std::atomic<bool> asked_{false};  // for a round
  Signal wake_;
  mutable Mutex mutex_;
  std::optional<std::vector<TableInfo>> tables_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<std::string> unrunnable_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<std::string> prune_troubles_ MILLRACE_GUARDED_BY(mutex_);
  std::string trouble_ MILLRACE_GUARDED_BY(mutex_);
  std::vector<std::string> fan_out_troubles_ MILLRACE_GUARDED_BY(mutex_);
  std::optional<bool> readable_ MILLRACE_GUARDED_BY(mutex_);
  SeenLives lives_ MILLRACE_GUARDED_BY(mutex_);
  // The thread's own.
  BootTime looked_{};  // for leftovers
  // By which plan; null: something could not be looked at.
  std::shared_ptr<const Ownership> looked_by_;
  BootTime did_seldom_{};  // what hardly ever has something to do
  // The last time that all was read and as it is wanted to be; nullopt: it is not.
  std::optional<BootTime> settled_;
  BootTime ran_fan_outs_{};
  BootTime read_next_{};           // how the tasks stand
  std::optional<BootTime> tried_;  // as a candidate
  Thread thread_;
};

}  // namespace millrace::engine
