// The permits of task types of which only so many may run at once in the whole cluster: rows of one shard,
// the home. What holds them, and why this holds: README.md, "Permits".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/result.h"

namespace millrace::engine {

// One permit as its row shows it.
struct Permit {
  std::string handler;
  std::uint32_t number = 0;  // from 1 on
  std::uint64_t turn = 0;    // counts the writes of the row
  std::string holder;        // an incarnation of this shard; empty: it is free
  std::string worker;        // the holder's; empty where that is gone
  bool lapsed = false;       // its holder is marked dead here, or gone
  std::string task;          // shard/table/id; empty: its holder is about to claim one
  std::uint32_t attempt = 0;
  std::optional<WallTime> taken_at;
};

// One conditional write: it has an effect where the row's turn is still this, and raises it.
struct PermitChange {
  enum class To {
    Held,   // by the writer, if it is alive here, for this task; from nobody, from itself, or from the dead
    Free,   // where the writer holds it
    Voided  // as it is: what was sent with this turn before can't land any more
  };
  std::string handler;
  std::uint32_t number = 0;
  std::uint64_t turn = 0;
  To to = To::Held;
  std::string task = {};
  std::uint32_t attempt = 0;
  bool operator==(const PermitChange&) const = default;
};

enum class PermitAnswer {
  Done,
  Refused,  // the row is not as the change wants it
  Locked    // another session has locked it: nobody has waited for that
};

class PermitStore {
 public:
  virtual ~PermitStore() = default;

  // Of these types, by type and number.
  virtual Result<std::vector<Permit>> Permits(std::span<const std::string> handlers) = 0;
  // Those that somebody holds, of all types.
  virtual Result<std::vector<Permit>> Holders() = 0;
  // The numbers 1 … count are there.
  virtual Status Make(const std::string& handler, std::uint32_t count) = 0;
  // In the name of `incarnation`; what became of each. Of several, all that are not locked are written, or
  // none.
  virtual Result<std::vector<PermitAnswer>> Change(const std::string& incarnation,
                                                   std::span<const PermitChange> changes) = 0;

  // Which shard this one says is the home; empty: it says nothing yet.
  virtual Result<std::string> Home() = 0;
  // Says so, unless it says something already.
  virtual Status NameHome(const std::string& home) = 0;
};

}  // namespace millrace::engine
