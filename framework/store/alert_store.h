// What alerts need of a shard: what was said of them, by the ledger of keys; what has happened, by the audit;
// and how many tasks failed, by the counters. Every answer is bounded; nothing counts a pool.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/result.h"
#include "framework/task/task.h"

namespace millrace::engine {

// An entry of the ledger: a task that was added under a key.
struct KeyedTask {
  TaskKey task;
  std::string handler;
  std::string key;
  Micros ago{};  // it was entered, by the database's clock
};

// What the program itself writes into millrace_audit, as its action.
inline constexpr char kSettleRefused[] = "settle_refused";
inline constexpr char kClaimRefused[] = "claim_refused";
inline constexpr char kHandlerCrashed[] = "crash";
inline constexpr char kWorkerLost[] = "worker_lost";

struct ShardEvent {
  std::uint64_t id = 0;
  std::string kind;     // one of those above
  std::string actor;    // whose it is: an incarnation; may be empty
  std::string subject;  // a task, an incarnation; of a refused claim the first of its tasks
  std::string type;     // of the task; empty: it has none, or an older version has noted it. Of firings that
                        // lapsed: how many, and why
  Micros ago{};         // by the database's clock
};

struct ShardEvents {
  std::vector<ShardEvent> events;  // oldest first
  std::uint64_t greatest = 0;      // the audit's last id, of whatever row
};

// One thread at a time; errors as in framework/store/store.h.
class AlertStore {
 public:
  virtual ~AlertStore() = default;

  // The entries of a task type whose key begins with `prefix`, the greatest keys first; at most `limit`.
  virtual Result<std::vector<KeyedTask>> Keyed(const std::string& handler, const std::string& prefix,
                                               std::size_t limit) = 0;
  // The events above `after` among the newest 10,000 rows of the audit.
  virtual Result<ShardEvents> Events(std::uint64_t after) = 0;
  // Enters one.
  virtual Status Note(std::string_view kind, const std::string& actor, const std::string& subject,
                      const std::string& type) = 0;
  // Tasks that are in a failed pool now, by handler.
  virtual Result<std::map<std::string, std::uint64_t>> Failed() = 0;
};

}  // namespace millrace::engine
