// One shard as alerts see it: what is wrong there, what was said of it, and where messages are added.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "coordinator/alerts/judge.h"
#include "framework/policy/pauses.h"
#include "framework/store/store.h"
#include "framework/worker/control_plane.h"

namespace millrace::engine {

// Where a task would be run.
struct AlertSpot {
  TableName table;
  std::optional<std::uint32_t> slice;  // nullopt: any
};

// What the process that judges knows beside the shards. Its functions are called by the watch's thread.
struct AlertPlace {
  // Whether a worker that is there runs tasks of this type; null: that is not known.
  std::function<bool(const std::string& type)> runs;
  // Where in a shard a task of this type would be run; nullopt: nowhere.
  std::function<std::optional<AlertSpot>(const std::string& shard, const std::string& type,
                                         const std::vector<TableInfo>& tables)>
      spot;
  std::optional<std::vector<std::string>> unowned = {};  // slices; nullopt: not known
  // Breakers that have opened by themselves, beside those that rows of the shards tell of: why, by task type;
  // nullopt: not known.
  std::optional<std::map<std::string, std::string>> breakers = {};
  std::shared_ptr<const Pauses> pauses = {};  // what the cluster has paused; null: that is not known
};

// What the configured alerts need to know.
struct AlertNeeds {
  std::optional<Micros> late = {};    // from so long on
  std::optional<Micros> events = {};  // of so long
  bool schedules = false;             // which of them are late
  const Config* config = nullptr;     // what waits on purpose; null: nothing does
};
AlertNeeds NeedsOf(const std::map<std::string, AlertConfig>& alerts);

// Messages of alerts that did not go out.
struct Unsent {
  std::uint64_t failed = 0;  // in the failed pool
  bool tries_again = false;  // others wait for a later try
  bool Any() const { return failed > 0 || tries_again; }
  bool operator==(const Unsent&) const = default;
};
// One sentence for each kind, with what says why.
std::vector<std::string> TroublesOf(const Unsent& unsent, const std::string& shard);

// One thread.
class AlertShard {
 public:
  AlertShard(std::string name, std::shared_ptr<Store> store);

  const std::shared_ptr<Store>& store() const { return store_; }
  // Adds what is seen here. An error: the shard did not answer, and the observation is not whole.
  Status Observe(const AlertNeeds& needs, const AlertPlace& place, BootTime now, Observation& seen);
  // What was said of an alert here last; its number is 0 where nothing was.
  Result<SaidAlert> Said(const std::string& alert, BootTime now);
  // The most frequent failures among the newest tasks of a type (`*`: any) that failed:
  // `main/tasks/17, noop [timeout] and 86 like it: why`.
  std::vector<std::string> FailedExamples(const std::string& type, std::size_t most);
  // Adds the tasks of a message, all or none. False: somebody else has said it. NotFound: nobody would run
  // them here.
  Result<bool> Add(std::vector<NewTask> tasks, const AlertPlace& place);
  // Takes back what was added here of an alert before that message and is not sent yet, so that nobody hears
  // it behind what was said later. `running`: what is being sent is asked to stop, too. The key of one that
  // nobody has started is free again then.
  void Withdraw(const std::string& alert, std::uint64_t before, bool running);
  // As of the last look.
  const Unsent& unsent() const { return unsent_; }
  // The tables of which it could not be seen what is due there, and why.
  const std::map<TableName, std::string>& unread() const { return unread_; }

 private:
  Status ReadTables(BootTime now);
  // The newest first.
  Result<std::vector<KeyedTask>> Messages(const std::string& alert);
  Status LookAtDue(const AlertNeeds& needs, const AlertPlace& place, Observation& seen);
  Status LookAtBreakers(const DueMap& map, Observation& seen);
  // Which groups wait on purpose now.
  void NoteHeld(const AlertNeeds& needs, const AlertPlace& place, const DueMap& map);
  Status LookForWaiting(const std::string& type, std::vector<DueGroup> groups, WallTime now,
                        Observation& seen);
  // Of `left` rows at most, of which it takes those that it looks at.
  Result<std::optional<WallTime>> FirstWaiting(const DueGroup& group, std::size_t& left);
  Status LookAtSchedules(const AlertNeeds& needs, Observation& seen);
  Status LookAtEvents(Micros window, BootTime now, Observation& seen);
  // Those that are older, and those that nobody counts.
  void DropEvents(Micros window, BootTime now);

  using GroupKey = std::tuple<TableName, std::uint32_t, std::string, std::uint32_t>;
  static GroupKey KeyOf(const DueGroup& group) {
    return {group.table, group.slice, group.handler, group.urgency};
  }

  const std::string name_;
  const std::shared_ptr<Store> store_;
  const std::unique_ptr<AlertStore> alerts_;
  const std::unique_ptr<TaskStore> tasks_;
  const std::unique_ptr<TaskOperations> operations_;
  const std::unique_ptr<OverviewStore> overview_;
  const std::unique_ptr<SchemaStore> schema_;
  const std::unique_ptr<ScheduleStore> schedules_;
  std::optional<std::vector<TableInfo>> tables_;
  BootTime tables_read_{};
  std::map<GroupKey, WallTime> held_;  // groups that waited on purpose, until then: late only since
  struct Kept {
    ShardEvent event;
    BootTime at;
  };
  std::deque<Kept> events_;  // the newest last
  // Numbers are given before the commit, so that a smaller one may appear later: those above `floor_` are
  // read again, and `known_` are those of them that were seen.
  std::uint64_t floor_ = 0;
  std::set<std::uint64_t> known_;
  std::deque<std::pair<BootTime, std::uint64_t>> marks_;  // the greatest number, at looks since the floor's
  Unsent unsent_;
  std::map<TableName, std::string> unread_;
};

// What was said of an alert last in these shards; those that do not answer are left out.
SaidAlert LastSaid(const StoresByShard& shards, const std::string& alert, BootTime now);

}  // namespace millrace::engine
