// Where a schedule's row stands: in the shard of its tasks, and in one alone. Whoever looks after a shard
// writes into that shard only, and goes by what was read of the others, so that one that is away holds up
// nobody else. Pure.
//
// A row goes to another shard in three steps, each by the shard that it concerns: here it is marked with
// where it goes, and fires no more; there it is made, as it stood here; here it goes. So at any time one
// shard has it at least, and one that may fire it at most.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/store/schedule_store.h"

namespace millrace::engine {

// The rows of a shard, as they were read last; `begun` before that.
struct ScheduleReading {
  BootTime begun;
  std::map<std::string, ScheduleRow> rows;
};
using ScheduleReadings = std::map<std::string, ScheduleReading>;  // by shard

struct PlacedSchedule {
  std::string name;
  std::string home;        // the shard that the document says
  const ScheduleRow* own;  // nullptr: this shard has none
  BootTime since;          // from the beginning of this reading on there was one, or none, in each
  bool confirmed = false;  // that no shard has one: one that was moved between two readings hides from both
};

struct PlaceStep {
  enum class Act {
    Fire,     // the row is at home
    Confirm,  // that no shard has one, by reading all of them once more
    Make,     // a new one
    Take,     // one that comes from another shard, as `row` says
    Send,     // to the home
    Keep,     // it was to go where there is no shard any more
    Drop,     // the shard that it went to has it
    Wait,     // for `shard`
    Leave,    // it is another shard's
  };
  Act act = Act::Leave;
  std::string shard = {};
  const ScheduleRow* row = nullptr;
};

// `shards` are all of the configuration; `readings` of those among them that could be read, `self` may be
// one.
PlaceStep Place(const PlacedSchedule& schedule, const std::string& self,
                const std::vector<std::string>& shards, const ScheduleReadings& readings);

}  // namespace millrace::engine
