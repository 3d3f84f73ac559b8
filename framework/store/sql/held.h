// Ends what is held for too long, step by step. One thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/store/prune_store.h"
#include "framework/store/sql/connection.h"

namespace millrace::engine::sql {

// See PruneStore::EndHeld. Held rows have an end of the due index of their own (on SQLite an index): a walk
// finds the groups there are by one jump for each, and then pages through those that the rule names.
class HeldWalk {
 public:
  explicit HeldWalk(Connection& db) : db_(db) {}

  Result<PruneStep> Step(const HoldRule& rule, const std::string& after, std::size_t limit);

 private:
  struct Group {
    std::uint32_t slice = 0;
    std::string handler;
  };
  Status Begin(const HoldRule& rule);
  Result<std::size_t> End(const HoldRule& rule, const Group& group, const std::vector<std::uint64_t>& ids);
  // Those that can be ended, where others can't: halved until they are alone.
  Result<std::size_t> EndMost(const HoldRule& rule, const Group& group, std::span<const std::uint64_t> ids);

  Connection& db_;
  std::vector<Group> groups_;  // yet to be walked; the last one is next
  std::string run_at_;         // in that one: behind this row
  std::uint64_t id_ = 0;
  std::optional<Error> refused_;  // why one of this walk can't be ended
};

}  // namespace millrace::engine::sql
