// Fan-outs that are under way: a firing whose tasks are the rows of a query, submitted page by page. A row of
// the shard says how far each has come, so that whoever leads next goes on there.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/task/task.h"

namespace millrace::engine {

// As it was when its schedule fired: what becomes of the schedule afterwards changes nothing of it.
struct FanOut {
  std::string schedule;
  WallTime firing;
  std::string handler;
  TableName table;
  std::string query;
  std::string key;   // as KeyTemplate reads it
  std::string zone;  // of the times in the key
  // Where its next page begins, as ToText(QueryPlace) writes it; nullopt: at the beginning.
  std::optional<std::string> place = std::nullopt;
  std::uint64_t submitted = 0;
  std::uint64_t refused = 0;  // rows that are no tasks
  WallTime begun{};           // by the database's clock, as UnderWay reads it
};

struct FanOutPage {
  std::vector<NewTask> tasks;  // at most kMaxBatchRows, each with its key
  std::uint64_t refused = 0;
  std::optional<std::string> place;  // behind it
  bool last = false;
  std::uint64_t taken = 0;  // keys of earlier pages that were taken, as far as whoever sends this one knows
};

struct FanOutStep {
  bool overtaken = false;   // somebody else has done this page, or has ended it: nothing was changed
  std::uint64_t added = 0;  // the others' keys are taken
};

// One that has come to its end, as the audit tells of it.
struct EndedFanOut {
  WallTime firing;
  std::uint64_t submitted = 0;
  std::uint64_t refused = 0;
  std::uint64_t taken = 0;  // at least: keys that were taken already
};

// What is noted in millrace_audit when one has come to its end, and when somebody has stopped them.
inline constexpr char kFanOutEnded[] = "fan_out_ended";
inline constexpr char kFanOutsStopped[] = "fan_outs_stopped";

// One thread at a time; errors as in framework/store/store.h.
class FanOutStore {
 public:
  virtual ~FanOutStore() = default;

  // The oldest of each schedule, then the second oldest of each, and so on, the oldest firing first: at most
  // 1,000, so that one schedule whose fan-outs come to no end keeps nobody else's out. None where the shard's
  // schema is older than they are.
  virtual Result<std::vector<FanOut>> UnderWay() = 0;
  // Adds the page's tasks and moves `seen`'s row on, in one transaction; with the last page the row goes, and
  // the audit tells of it. `seen` is the row as UnderWay read it. Unknown: UnderWay tells what came of it.
  virtual Result<FanOutStep> Step(const FanOut& seen, const FanOutPage& page) = 0;
  // Of each schedule the last that has come to its end, of those that the newest 20,000 rows of the audit
  // tell of.
  virtual Result<std::map<std::string, EndedFanOut>> Ended() = 0;
  // Ends all of a schedule; the tasks that they have added stay. Returns how many they were.
  virtual Result<std::uint64_t> Stop(const std::string& schedule, const std::string& actor) = 0;
};

}  // namespace millrace::engine
