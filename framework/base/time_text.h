// Times and durations as people write them.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/clock.h"
#include "framework/base/result.h"

namespace millrace::engine {

// RFC 3339 with a zone: 2026-11-20T18:00:00Z, 2026-11-20T20:00:00.25+02:00. Invalid without a zone.
Result<WallTime> ParseTime(std::string_view text);
// 2026-11-20T18:00:00Z, with a fraction of up to six digits only where it is not zero.
std::string FormatTime(WallTime time);

// 200ms, 5m, 1h30m, 7d, 2.5s; units us, ms, s, m, h, d. Not negative.
Result<Micros> ParseDuration(std::string_view text);
// The shortest exact form that ParseDuration reads back: 5m, 1h30m, 250ms.
std::string FormatDuration(Micros duration);

}  // namespace millrace::engine
