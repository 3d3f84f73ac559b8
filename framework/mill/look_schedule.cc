#include "framework/mill/look_schedule.h"

#include <algorithm>

#include "framework/policy/poll_interval.h"

namespace millrace::engine {
namespace {

constexpr int kWorth = 2;  // a part is worth its while where it takes no more of a whole map than its half
constexpr int kFullShare = 50;  // whole ones take so small a part of the time, where parts stand in for them
// But not at once: what made them dear may be over, and only they show what parts don't. So long at first,
// then at most twice as long as between the last two.
constexpr Micros kLongestAtFirst = std::chrono::seconds(10);
constexpr Micros kLongest = std::chrono::seconds(30);   // and then, whatever it costs
constexpr Micros kTryAgain = std::chrono::seconds(10);  // whether parts are cheaper by now

}  // namespace

bool LookSchedule::TakesPart(BootTime now, const std::vector<TableSlices>& slices) {
  if (slices != slices_) Forget();
  slices_ = slices;
  return now < full_due_ && PartsHelp(now);
}

void LookSchedule::Looked(BootTime asked, Micros cost, bool part, Micros bound, std::size_t tables,
                          bool begun) {
  begun_ = begun;
  if (part) {
    part_.Add(cost);
    tried_ = asked;
  } else {
    full_.Add(cost);
    between_full_ = full_at_ ? asked - *full_at_ : Micros(0);
    full_at_ = asked;
  }
  interval_ = PollInterval(bound, full_.Least(), tables);
  dear_ = interval_ > PollInterval(bound, Micros(0), tables);
  Micros full = interval_;
  if (PartsHelp(asked)) {
    full = std::max(
        full, std::min(full_.Least() * kFullShare, std::clamp(2 * between_full_, kLongestAtFirst, kLongest)));
    const Micros cost_of_next = TriesParts(asked) ? Micros(0) : std::min(part_.Least(), full_.Least());
    interval_ = PollInterval(bound, cost_of_next, tables);
  }
  if (!part) full_due_ = asked + Early(full);
  next_ = asked + Early(interval_);
  if (asked < full_due_) next_ = std::min(next_, full_due_);
}

bool LookSchedule::TriesParts(BootTime now) const { return now - tried_ >= kTryAgain; }

bool LookSchedule::WantsParts(BootTime now) const {
  return dear_ && (part_.Least() * kWorth <= full_.Least() || TriesParts(now));
}

}  // namespace millrace::engine
