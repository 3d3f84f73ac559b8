// What an alert's condition says of an observation, and when that is to be told. Pure; README.md has the
// rules.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/config/config.h"
#include "framework/policy/pauses.h"
#include "framework/store/task_store.h"

namespace millrace::engine {

// Something that happened, of the kinds of framework/store/alert_store.h.
struct SeenEvent {
  std::string kind;
  std::string what;  // `main: tasks/17`
  Micros ago{};
  std::string type = {};   // as in ShardEvent
  std::string shard = {};  // that has noted it
};

// What was seen at one moment, without tasks of the built-in types. A part that was not looked at is absent.
struct Observation {
  bool whole = true;                                                // every shard answered
  bool whole_due = true;                                            // and told what is due in all its tables
  std::optional<std::map<std::string, std::uint64_t>> failed = {};  // in the failed pools, by task type
  std::optional<std::map<std::string, Micros>> late = {};  // how long the oldest waiting task is due, by type
  std::set<std::string> late_unsure = {};  // types with so many running rows that not all was looked at
  std::optional<std::map<std::string, Micros>> unrunnable = {};      // the same, of types that nobody runs
  std::optional<std::vector<std::string>> unowned = {};              // slices
  std::optional<std::vector<SeenEvent>> events = {};                 // oldest first
  std::optional<std::map<std::string, std::string>> breakers = {};   // that are open: why, by task type
  std::optional<std::map<std::string, Micros>> late_schedules = {};  // by how much, `main/nightly`
};

// How far an alert about events looks back: further than `every`, so that what has happened just after a
// message is still seen when the next may be sent, and not less far than what it counts is told at once.
Micros LookBack(const AlertConfig& alert);

struct AlertFact {
  bool holds = false;
  std::uint64_t count = 0;              // how many
  std::string what;                     // `10000 tasks failed`; of one line, as all that follows
  std::vector<std::string> parts = {};  // `noop: 9000`, the largest first, a few
  // What is counted, sorted, where another one is news though the count is the same: the task types. Empty
  // where there are more than kMostNames.
  std::vector<std::string> names = {};
  std::optional<Micros> newest = {};  // how long ago the last of the counted events happened
  static constexpr std::size_t kMostNames = 100;
};

// nullopt: the observation does not say. What was seen of some of the shards alone can show that an alert
// holds, not that it does not.
std::optional<AlertFact> FactOf(const AlertConfig& alert, const Observation& seen);

// Whether due tasks wait because somebody wants it so, that they are late is no news then: by a pause, a
// breaker that was opened by hand, their type's hours, or a band's look or a round of scanning that may be to
// come. Not by a limit, whose backlog somebody wants to hear of, nor by a breaker that opened by itself.
bool HeldOnPurpose(const Config& config, const Pauses& pauses, const std::string& shard,
                   const DueGroup& group, WallTime now);

// What was said of an alert last.
struct SaidAlert {
  std::uint64_t number = 0;               // of the last message; 0: none
  bool firing = false;                    // it said that the alert fires
  std::uint64_t count = 0;                // and how many there were
  WallTime since{};                       // and since when
  std::optional<BootTime> fired_at = {};  // the last message of that kind
  std::vector<std::string> names = {};    // of which types, if it told
  std::string kind = {};                  // which kind the alert had then; empty: it is not known
  std::string handler = {};               // and of which tasks it was; likewise
};

// What was said, as it counts for what is seen now. That the alert fires while it was about something else is
// no word of what it is about now; where that does not hold, it is to be said all the same that it is over.
SaidAlert SaidFor(const AlertConfig& alert, bool holds, SaidAlert said);

enum class AlertWord { Nothing, Firing, Over };

// When an alert is told. One for each alert; not thread-safe. It remembers seconds: whoever begins anew with
// what was said last comes to the same messages.
class AlertJudge {
 public:
  static constexpr Micros kLook = std::chrono::seconds(5);
  static constexpr Micros kLookAgain = std::chrono::seconds(1);
  static constexpr Micros kGather = std::chrono::seconds(3);  // while a new alert's number still grows
  static constexpr Micros kCalm = std::chrono::seconds(2);    // without it, before it is over

  AlertWord Look(const std::optional<AlertFact>& fact, const SaidAlert& said, Micros every, BootTime now);
  // When it wants the next look, after this one.
  Micros Wait() const { return soon_ ? kLookAgain : kLook; }

 private:
  AlertWord Hold(const AlertFact& fact, const SaidAlert& said, Micros every, BootTime now);
  AlertWord Clear(const SaidAlert& said, BootTime now);

  std::optional<BootTime> held_;   // since when it holds, as far as was seen
  std::optional<BootTime> clear_;  // since when it does not, though it was said
  std::uint64_t count_ = 0;        // at the last look
  bool soon_ = false;
};

}  // namespace millrace::engine
