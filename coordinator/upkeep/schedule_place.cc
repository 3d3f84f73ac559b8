#include "coordinator/upkeep/schedule_place.h"

#include <algorithm>

namespace millrace::engine {
namespace {

using Act = PlaceStep::Act;

class Placing {
 public:
  Placing(const PlacedSchedule& schedule, const std::string& self, const std::vector<std::string>& shards,
          const ScheduleReadings& readings)
      : schedule_(schedule), self_(self), shards_(shards), readings_(readings) {}

  PlaceStep Step() const {
    if (schedule_.own == nullptr) return WithoutRow();
    if (!schedule_.own->moved_to.empty()) return Going(schedule_.own->moved_to);
    return schedule_.home == self_ ? PlaceStep{Act::Fire} : ToHome();
  }

 private:
  // The other shards' row; nullptr: none as far as was read.
  const ScheduleRow* RowIn(const std::string& shard) const {
    const auto reading = readings_.find(shard);
    if (reading == readings_.end()) return nullptr;
    const auto row = reading->second.rows.find(schedule_.name);
    return row == reading->second.rows.end() ? nullptr : &row->second;
  }

  // It was read since this one is as it is.
  bool IsFresh(const std::string& shard) const {
    const auto reading = readings_.find(shard);
    return reading != readings_.end() && reading->second.begun > schedule_.since;
  }

  // A shard that has a row of the name, or may have one, since it was not read since this one is as it is.
  std::optional<std::string> AnotherMayHave() const {
    for (const std::string& shard : shards_) {
      if (shard == self_) continue;
      if (!IsFresh(shard) || RowIn(shard) != nullptr) return shard;
    }
    return std::nullopt;
  }

  // What was read of the sender before this shard lost its row may be what it had taken then, and sent on.
  PlaceStep WithoutRow() const {
    for (const std::string& shard : shards_) {
      const ScheduleRow* row = shard == self_ ? nullptr : RowIn(shard);
      if (row != nullptr && row->moved_to == self_)
        return IsFresh(shard) ? PlaceStep{Act::Take, shard, row} : PlaceStep{Act::Wait, shard};
    }
    if (schedule_.home != self_) return {};
    if (const auto other = AnotherMayHave()) return {Act::Wait, *other};
    return {schedule_.confirmed ? Act::Make : Act::Confirm};
  }

  PlaceStep Going(const std::string& to) const {
    if (RowIn(to) != nullptr) return {Act::Drop};
    const bool is_shard = std::find(shards_.begin(), shards_.end(), to) != shards_.end();
    return is_shard ? PlaceStep{Act::Wait, to} : PlaceStep{Act::Keep};
  }

  // Two who had different documents may have made one each: the one at home stays.
  PlaceStep ToHome() const {
    const auto other = AnotherMayHave();
    if (!other) return {Act::Send, schedule_.home};
    const ScheduleRow* row = RowIn(schedule_.home);
    const bool settled = row != nullptr && row->moved_to.empty() && IsFresh(schedule_.home);
    return settled ? PlaceStep{Act::Drop} : PlaceStep{Act::Wait, *other};
  }

  const PlacedSchedule& schedule_;
  const std::string& self_;
  const std::vector<std::string>& shards_;
  const ScheduleReadings& readings_;
};

}  // namespace

PlaceStep Place(const PlacedSchedule& schedule, const std::string& self,
                const std::vector<std::string>& shards, const ScheduleReadings& readings) {
  return Placing(schedule, self, shards, readings).Step();
}

}  // namespace millrace::engine
