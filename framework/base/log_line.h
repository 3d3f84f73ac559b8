// How a line of the log looks. Pure.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "framework/base/clock.h"
#include "framework/base/log.h"

namespace millrace::engine {

// `2026-11-20T18:00:00.123Z I worker started worker=w1 shards=2`: UTC to the millisecond, so that columns
// align; I, W or E for the level; the event and its fields escaped (see Escape). Values that are empty or
// hold a space, `"` or `=` stand in quotes, and a quote in them is `\"`; so does an event that holds `"` or
// `=`, since what a handler says must not read as fields of ours.
std::string LogLine(WallTime at, LogLevel level, std::string_view event,
                    std::initializer_list<LogField> fields);

// `{"time":"2026-11-20T18:00:00.123Z","level":"info","message":"worker started","worker":"w1","shards":"2"}`:
// info, warning or error; all values are texts. A field that is called as one of the first three is
// `field_time`.
std::string JsonLogLine(WallTime at, LogLevel level, std::string_view event,
                        std::initializer_list<LogField> fields);

enum class LogFormat { Text, Json };

// How Log writes from now on: before StartLogging, or never. Text otherwise.
void SetLogFormat(LogFormat format);
LogFormat CurrentLogFormat();

}  // namespace millrace::engine
