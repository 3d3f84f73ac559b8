// The shares of the limits: what may be in force of each worker, by what the pages, the statuses and the
// shards say, and which pages are written next. README.md has the protocol. Pure: time is passed in.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/coordination/documents.h"
#include "coordinator/coordination/tree.h"
#include "coordinator/leader/plan_writer.h"
#include "coordinator/upkeep/seen_lives.h"
#include "framework/base/clock.h"
#include "framework/policy/limit_division.h"

namespace millrace::engine {

// The limits that the leader knows, and of others, or kinds of them, what workers say that they follow: the
// least where they differ. A worker's own configuration may name one that no other has.
LimitShares LimitsToDivide(const LimitShares& known, const std::map<std::string, WorkerDocument>& present);

// What there is to divide, and over whom.
struct LimitsView {
  const LimitShares& limits;  // the whole of each, by task type
  const StoredAssignments& stored;
  const std::map<std::string, WorkerDocument>& present;
  const std::map<std::string, StatusDocument>& statuses;
  const std::map<std::string, std::string>& left;  // by incarnation, as in MembershipView
  const LivesByShard& lives;
};

// Not thread-safe.
class LimitKeeper {
 public:
  // A new leader knows only what the view shows.
  void Begin() {
    away_.clear();
    turns_.clear();
  }
  // The pages that come next, of the term `epoch`: as many as fit into a multi. Any part of them keeps to the
  // limits.
  std::vector<TreeWrite> Next(const LimitsView& view, std::uint64_t epoch, BootTime now);

 private:
  struct Holder;
  std::map<std::string, Holder> Holders(const LimitsView& view, BootTime now);
  bool IsDead(const LimitsView& view, const std::string& id, const StatusDocument* successor) const;

  // Since when somebody who has shares is away, or is back as another life.
  std::map<std::string, BootTime> away_;
  std::map<std::string, RateTurns> turns_;  // of the rates, by task type
};

}  // namespace millrace::engine
