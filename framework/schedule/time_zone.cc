#include "framework/schedule/time_zone.h"

#include <date/tz.h>

#include <algorithm>
#include <cctype>
#include <exception>
#include <vector>

#include "framework/base/escape.h"
#include "framework/base/suggest.h"
#include "framework/base/utf8.h"

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

constexpr sys_seconds kEarliest = sys_days(std::chrono::year(-9999) / 1 / 1);
constexpr sys_seconds kLatest = sys_days(std::chrono::year(9999) / 12 / 31);

struct ZoneNames {
  std::vector<std::string> names;
  std::string trouble;  // why none can be used; empty: they can
};

// Files in the short form (`zic -b slim`) end with the last change of the law, and a rule for the rest that
// the library does not read: their summers would be missing. New York's tell, whose rule is of 2007.
bool HasFullTables() {
  const auto winter =
      date::locate_zone("America/New_York")->get_info(sys_days(std::chrono::year(2036) / 1 / 1));
  const auto summer =
      date::locate_zone("America/New_York")->get_info(sys_days(std::chrono::year(2036) / 7 / 1));
  return winter.offset != summer.offset;
}

const ZoneNames& KnownZones() {
  static const ZoneNames known = [] {
    ZoneNames zones;
    try {
      if (!HasFullTables()) {
        zones.trouble =
            "its files are in the short form (zic -b slim), which has no rules for the future; "
            "install tzdata in the full form (zic -b fat), as Debian has it";
        return zones;
      }
      for (const date::time_zone& zone : date::get_tzdb().zones) {
        if (zone.name() != "localtime") zones.names.push_back(zone.name());  // another one on each machine
      }
    } catch (const std::exception& error) {
      zones.trouble = std::string(error.what()) + "; install tzdata";
    }
    return zones;
  }();
  return known;
}

std::string Folded(std::string_view name) {
  std::string folded;
  for (const char c : name) {
    folded += c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return folded;
}

// ` (did you mean 'Europe/Berlin'?)`, for "europe/berlin", "Berlin" and "Europe/Berln".
std::string ZoneHint(std::string_view wrong, const std::vector<std::string>& names) {
  const std::string folded = Folded(wrong);
  for (const std::string& name : names) {
    const std::string known = Folded(name);
    if (known == folded || (!folded.empty() && known.ends_with("/" + folded)))
      return " (did you mean '" + name + "'?)";
  }
  return DidYouMean(wrong, names);
}

}  // namespace

Result<TimeZone> TimeZone::Find(std::string_view name) {
  TimeZone zone;
  if (name == zone.name_) return zone;
  const ZoneNames& known = KnownZones();
  if (!known.trouble.empty()) {
    return Fail(ErrorCode::Unavailable, "this machine's time zones can't be used: " + known.trouble);
  }
  if (std::find(known.names.begin(), known.names.end(), name) == known.names.end()) {
    const std::string hint = ZoneHint(name, known.names);
    return Fail(ErrorCode::Invalid,
                "'" + Escape(Excerpt(name)) + "' is no time zone that this machine knows" +
                    (hint.empty() ? "; write a name of the IANA database, such as Europe/Berlin" : hint));
  }
  zone.name_ = name;
  try {
    zone.zone_ = date::locate_zone(zone.name_);
    zone.zone_->get_info(sys_seconds());  // its file is read now, so that a bad one is met here
  } catch (const std::exception& error) {
    return Fail(ErrorCode::Unavailable,
                "the time zone " + zone.name_ + " can't be used: " + error.what() + "; install tzdata anew");
  }
  return zone;
}

TimeZone::Span TimeZone::SpanAt(sys_seconds at) const {
  if (zone_ == nullptr) return {kEarliest, kLatest, seconds(0)};
  const date::sys_info info = zone_->get_info(std::clamp(at, kEarliest, kLatest - seconds(1)));
  return {std::max(info.begin, kEarliest), std::min(info.end, kLatest), info.offset};
}

}  // namespace millrace::engine
