// When a task may not be started any more. Pure.
#pragma once

#include <optional>

#include "framework/base/clock.h"
#include "framework/task/task.h"

namespace millrace::engine {

// What the tables hold for a task that never expires, whatever its handler's configuration says: a person
// has asked for it to run once more.
inline constexpr char kNeverText[] = "9999-12-31 00:00:00.000000";
inline constexpr WallTime kNeverExpires = std::chrono::sys_days(std::chrono::year(9999) / 12 / 31);

// From when on no attempt of the task may begin; nullopt: it never expires. `expires_in` is what the
// configuration gives tasks of its type that have no expiry of their own, from when they were made; 0: none.
std::optional<WallTime> ExpiryOf(const Task& task, Micros expires_in);

// What a task is settled with that may not begin any more.
Outcome Expired(WallTime expiry);

// Invalid, with the name of what is wrong, for a new task that would expire before it is due, or just then.
// `now` is the database's clock, about; nullopt: what only a clock could tell is not looked at.
Status CheckExpiry(const NewTask& task, std::optional<WallTime> now);

}  // namespace millrace::engine
