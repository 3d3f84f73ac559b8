// What `millrace schedule` says of schedules: as the configuration has them, and what stands of them in their
// shards. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/cli/text_table.h"
#include "framework/config/config.h"
#include "framework/store/schedule_store.h"

namespace millrace::engine {

// What one shard told of schedules.
struct ShardScheduleFacts {
  std::optional<Error> away = {};  // then nothing else is known
  WallTime now{};                  // by its database's clock
  std::vector<ScheduleRow> rows = {};
  std::vector<FanOut> fan_outs = {};              // that are under way, the oldest first
  std::map<std::string, EndedFanOut> ended = {};  // by schedule: its last fan-out that has come to its end
  std::set<std::string> tables = {};
};

struct ScheduleTrouble {
  std::string name;  // for scripts: `handler`, `place`, `late`, `fan_out`, `key`
  std::string what;
};

struct ScheduleFacts {
  std::string name;
  ScheduleConfig config;
  WallTime now{};                              // by the clock of its database, where that answers
  std::string shard;                           // where it is to stand; empty: no shard is known
  std::optional<ScheduleRow> row = {};         // nullopt: there is none yet, or it is not known
  std::optional<FanOut> under_way = {};        // the oldest of its fan-outs that is
  std::optional<EndedFanOut> last_ended = {};  // its last fan-out that has come to its end
  std::string row_shard = {};                  // where the row stands
  std::string unknown = {};                    // why the row is not known
  std::vector<ScheduleTrouble> troubles = {};  // why it can't do what it says
};

// Whom somebody has, by the names of the code; nullopt: it is not known.
using KnownHandlers = std::optional<std::set<std::string>>;

// Nobody has the handler of this task type: with its name, and the nearest one; empty: somebody has.
std::string HandlerTrouble(const std::string& type, const Config& config, const KnownHandlers& handlers);

// The schedule of another name that gives tasks of the same handler the same keys, where both may hold rows
// of one key; empty: there is none. Of one key one task takes effect.
std::string SharesKeysWith(const std::string& name, const Config& config);

// The schedules of the configuration by their names, each with its row and what is wrong: nobody has its
// handler, its shard or table is not there, it is late, its fan-out stands still. `shards`: all of them, by
// name. `now`: this host's clock.
std::vector<ScheduleFacts> FactsOf(const Config& config,
                                   const std::map<std::string, ShardScheduleFacts>& shards,
                                   const KnownHandlers& handlers, WallTime now);

// `cron 0 2 * * *`, `every 5m`, `5m after the last has ended`, `once`.
std::string RhythmWords(const Timing& timing);

struct ComingFiring {
  WallTime at;
  std::string clock_change;  // on a day whose clock is changed: `the clock goes from 02:00 to 03:00`
};
// The next `count` firings, as the row says where it goes on; without a row as one would that was made now.
// Fewer where the rest is not known: of a fixed delay, or of a one-shot that is over.
std::vector<ComingFiring> ComingFirings(const ScheduleFacts& schedule, std::size_t count);
// A line for each: the time in the schedule's zone, in UTC, in how long, and the change of the clock.
TextTable FiringTable(const ScheduleFacts& schedule, const std::vector<ComingFiring>& firings);
// [{"at","local","clock_change"}]
nlohmann::ordered_json ToJson(const ScheduleFacts& schedule, const std::vector<ComingFiring>& firings);

TextTable ListTable(const std::vector<ScheduleFacts>& schedules);
// All but the firings of one schedule, `name   value` lines.
std::string DetailText(const ScheduleFacts& schedule);
nlohmann::ordered_json ToJson(const ScheduleFacts& schedule);

}  // namespace millrace::engine
