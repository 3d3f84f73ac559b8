// Removes what nobody needs any more: in small steps, each one short transaction that walks a table by its
// primary key from where the last step ended. Meant for one caller per shard, at its leisure; two at once do
// no harm. Nothing here reads or locks rows that wait or run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// How long a table's finished tasks are kept after their end, by handler.
struct KeepRule {
  TableName table;
  std::map<std::string, Micros> by_handler;
  std::optional<Micros> otherwise;  // handlers that are not named; nullopt: for ever
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
  // Entries of the ledger whose retention has passed. Looks at `limit` rows.
  virtual Result<PruneStep> PruneKeys(const std::string& after, std::size_t limit) = 0;
  // Incarnations that are marked dead and began longer ago than `age`; before them their counters, which are
  // added to those of nobody in particular, so that the sums stay. A row that such a one left running is
  // rescued as before, since a missing claimer counts as dead. Returns how many rows went, at most `limit`;
  // 0: the end.
  virtual Result<std::size_t> PruneIncarnations(Micros age, std::size_t limit) = 0;
};

}  // namespace millrace::engine
