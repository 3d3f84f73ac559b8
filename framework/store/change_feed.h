// Hears that tables of a shard have changed, without asking again and again. A hint that it is worth to look
// now, and never more: what is heard may be wrong, late, doubled or missing (framework/doorbell/README.md).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "framework/base/result.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// Tasks of this table and these slices may have become due.
struct Ring {
  std::optional<TableName> table = {};     // nullopt: any
  std::vector<std::uint32_t> slices = {};  // sorted; empty: any
  bool operator==(const Ring&) const = default;
};

// Whether a change of this table is worth a ring. Asked for each of them, on the feed's thread.
using IsWatched = std::function<bool(const TableName&)>;

// One thread, but for Interrupt.
class ChangeFeed {
 public:
  virtual ~ChangeFeed() = default;

  // Begins to listen, anew after Next has failed. What happened before is not told. Invalid, Denied: a
  // person has to do something about it, and the message says what; Unavailable: it may be better in a
  // moment.
  virtual Status Open() = 0;
  // What was heard, as soon as there is something; empty after a while without. An error: it hears nothing
  // until the next Open. Conflict: so much is going on that listening costs more than it brings.
  virtual Result<std::vector<Ring>> Next() = 0;
  // Thread-safe. Ends a call that waits, as Cancelled, and every later one.
  virtual void Interrupt() = 0;
};

}  // namespace millrace::engine
