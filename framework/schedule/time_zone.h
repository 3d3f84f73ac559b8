// A time zone of the IANA database, as this machine's tzdata has it. Read once a process: after an update of
// tzdata, processes are started anew. Thread-safe.
//
// Howard Hinnant's library reads the files' tables alone, which Debian's tzdata fills up to 2037: from 2038
// on zones with daylight saving stay at their last offset.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "framework/base/clock.h"
#include "framework/base/result.h"

namespace date {
class time_zone;
}

namespace millrace::engine {

class TimeZone {
 public:
  TimeZone() = default;  // UTC, which needs no tzdata
  // Invalid for a name that is none, with the nearest one; Unavailable where the machine has no tzdata that
  // can be used.
  static Result<TimeZone> Find(std::string_view name);

  // A time during which the offset from UTC stays the same; `end` is behind it.
  struct Span {
    std::chrono::sys_seconds begin;
    std::chrono::sys_seconds end;
    std::chrono::seconds offset;
  };
  Span SpanAt(std::chrono::sys_seconds at) const;

  const std::string& name() const { return name_; }
  bool operator==(const TimeZone& other) const { return name_ == other.name_; }

 private:
  std::string name_ = "UTC";
  const date::time_zone* zone_ = nullptr;  // nullptr: UTC; else one that lives as long as the process
};

}  // namespace millrace::engine
