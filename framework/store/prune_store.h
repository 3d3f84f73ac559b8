// Removes what nobody needs any more: in small steps, each one short transaction that goes on where the last
// step ended. Meant for one caller per shard, at its leisure; two at once do no harm. Nothing here reads or
// locks rows that wait or run.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/store/task_operations.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// How long a table's finished tasks are kept after their end, by handler.
struct KeepRule {
  TableName table;
  std::map<std::string, Micros> by_handler;
  std::optional<Micros> otherwise;  // handlers that are not named; nullopt: for ever
  // Those whose tasks are handed out before they go, and stay where `hand_out` says false. Whoever gets them
  // may get them once more, since a step may be lost behind it.
  std::set<std::string> handed_out = {};
  std::function<bool(const std::string& handler, std::span<const TaskRecord> tasks)> hand_out = {};
};

// How long a table's tasks may be held, by handler; others: for ever.
struct HoldRule {
  TableName table;
  std::map<std::string, Micros> by_handler;
};

struct PruneStep {
  std::size_t removed = 0;
  std::string next;  // give it back as `after`; empty: the walk is over
};

class PruneStore {
 public:
  virtual ~PruneStore() = default;

  // Finished tasks that are kept no longer, each with its rows in millrace_attempts. Looks at `limit` rows.
  // The failed pool is a person's to empty.
  virtual Result<PruneStep> PruneEnded(const KeepRule& rule, const std::string& after, std::size_t limit) = 0;
  // Held tasks that nobody has changed for longer: to the finished pool as cancelled, "held longer than …".
  // Looks at `limit` rows; an empty `after` begins a walk, which is this session's alone. One that the
  // database refuses to end holds up no other: the last step of the walk says why, as Invalid.
  virtual Result<PruneStep> EndHeld(const HoldRule& rule, const std::string& after, std::size_t limit) = 0;
  // Entries of the ledger whose retention has passed. Looks at `limit` rows.
  virtual Result<PruneStep> PruneKeys(const std::string& after, std::size_t limit) = 0;
  // Incarnations that are marked dead and began longer ago than `age`; before them their counters, which are
  // added to those of nobody in particular, so that the sums stay. A row that such a one left running is
  // rescued as before, since a missing claimer counts as dead. Returns how many rows went, at most `limit`;
  // 0: the end.
  virtual Result<std::size_t> PruneIncarnations(Micros age, std::size_t limit) = 0;
};

}  // namespace millrace::engine
