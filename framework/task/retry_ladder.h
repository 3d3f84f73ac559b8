// The retry ladder: what follows an attempt. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/clock.h"
#include "framework/task/task.h"

namespace millrace::engine {

// What is done about errors of one kind, in place of the ladder.
struct RetryClass {
  std::string pattern;         // an error class; a `*` at the end stands for anything
  bool fail = false;           // to the failed pool at once
  std::vector<Micros> delays;  // otherwise its own ladder
  bool operator==(const RetryClass&) const = default;
};

struct RetryPolicy {
  std::vector<Micros> delays{std::chrono::minutes(1), std::chrono::minutes(5), std::chrono::minutes(20)};
  std::uint32_t max_failures = 4;   // the failure with this number ends in the failed pool; at least 1
  double jitter = 0.1;              // a delay is spread evenly over ± this part of itself; 0 … 1
  Micros expires_in{};              // of tasks without an expiry of their own (see expiry.h); 0: none
  std::vector<RetryClass> classes;  // the first that fits counts
};

// What the policy says of errors of this class: null where none of its classes fits.
const RetryClass* ClassOf(const RetryPolicy& policy, std::string_view error_class);

std::uint32_t NextFailure(const Task& task);  // its number, 1 for the first; the largest stays

// The delay after the failure with this number (1 is the first): the tier of the ladder, or of its class's
// own, then the last tier again, spread by the jitter. `unit` is random in [0, 1).
Micros RetryDelay(const RetryPolicy& policy, std::uint32_t failure, double unit,
                  std::string_view error_class = {});

// A delay that is not the ladder's, spread likewise.
Micros Spread(Micros delay, double jitter, double unit);

// What the store has to write for `outcome` of `task` (as claimed). `unit` as above. `now` is the database's
// clock: a task that would come due again no sooner than it expires ends at once; nullopt: that is not known.
Settlement Settle(const RetryPolicy& policy, const Task& task, const Outcome& outcome, double unit,
                  std::optional<WallTime> now = std::nullopt);

}  // namespace millrace::engine
