// The seam to the databases, in domain words. A Store is one shard: one database with its task tables.
//
// Every session below belongs to one thread at a time, connects at its first use, and after a lost connection
// connects anew at its next use. Sessions share connections: a store has as many as are used at the same
// moment, and those that fall silent are closed. The IncarnationStore alone has one of its own. No session
// retries a write by itself. Errors:
//   Unavailable  nothing was changed: no connection, the server is read-only or refuses for now
//   Unknown      the connection was lost under a write: it may or may not have happened; read back
//   Conflict     a lock wait (1205) or deadlock (1213); the statement or transaction had no effect
//   Denied       the server does not let this user in, or not do this: that says nothing of any row, and
//                nothing was changed
//   Invalid      the database refused the data; Internal: it refused the statement (a defect, or a wrong
//   schema)
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "framework/store/alert_store.h"
#include "framework/store/batch_store.h"
#include "framework/store/change_feed.h"
#include "framework/store/diagnosis.h"
#include "framework/store/fan_out_store.h"
#include "framework/store/incarnation_store.h"
#include "framework/store/overview.h"
#include "framework/store/permit_store.h"
#include "framework/store/prune_store.h"
#include "framework/store/schedule_store.h"
#include "framework/store/schema_store.h"
#include "framework/store/task_operations.h"
#include "framework/store/task_store.h"
#include "framework/store/task_transaction.h"

namespace millrace::engine {

// A server's binary log is followed by this account; an empty one is the store's own.
struct DoorbellAccount {
  std::string user = {};
  std::string password_file = {};
  bool operator==(const DoorbellAccount&) const = default;
};

struct StoreOptions {
  std::string
      password_file;  // one trailing newline is dropped; empty: no password. Refused if others can read it
  Micros connect_timeout = std::chrono::seconds(5);
  Micros io_timeout = std::chrono::seconds(20);  // socket reads and writes
  // Transactions of handlers that are open at once; one more waits for `connect_timeout`, then has
  // NoConnection. 0: one for each session, and so for each thread of a worker's lanes.
  std::size_t max_transactions = 0;
  std::optional<DoorbellAccount> doorbell = {};  // nullopt: a server's log is not followed
  Micros lease = std::chrono::seconds(10);  // connections that fall silent are closed by the server after it
};

// Thread-safe. Must outlive its sessions.
class Store {
 public:
  virtual ~Store() = default;

  // The address for messages, without user or password: `mysql://host:3306/db`, `sqlite:points.db`.
  virtual std::string Describe() const = 0;
  // Connects once, and says clearly what is wrong: Unavailable (away), Denied (wrong password, no such
  // database, not verified TLS), Invalid (of a file: it is no database), Internal.
  virtual Status Ping() = 0;

  // One transaction that writes waits for the end of the other: two settles at once gain nothing.
  virtual bool WritesInTurn() const { return false; }

  virtual std::unique_ptr<TaskStore> OpenTasks() = 0;
  virtual std::unique_ptr<IncarnationStore> OpenIncarnations() = 0;
  // A handler's. `limit` is the longest time one transaction may stay open; where writers take turns it is
  // less, since they all wait for its end.
  virtual std::unique_ptr<TaskTransaction> OpenTransaction(Micros limit) = 0;
  // A person's, who has asked for one transaction: it has the whole limit everywhere.
  virtual std::unique_ptr<TaskTransaction> OpenLongTransaction(Micros limit) {
    return OpenTransaction(limit);
  }
  virtual std::unique_ptr<TaskOperations> OpenOperations() = 0;
  virtual std::unique_ptr<SchemaStore> OpenSchema() = 0;
  virtual std::unique_ptr<PruneStore> OpenPruning() = 0;
  virtual std::unique_ptr<OverviewStore> OpenOverview() = 0;
  // Null: it keeps nothing of that.
  virtual std::unique_ptr<AlertStore> OpenAlerts() { return nullptr; }
  // Null: it has no schedules.
  virtual std::unique_ptr<ScheduleStore> OpenSchedules() { return nullptr; }
  virtual std::unique_ptr<FanOutStore> OpenFanOuts() { return nullptr; }
  virtual std::unique_ptr<BatchStore> OpenBatches() { return nullptr; }   // null: likewise
  virtual std::unique_ptr<PermitStore> OpenPermits() { return nullptr; }  // null: it can be no home
  // Null: it has nothing to say of itself.
  virtual std::unique_ptr<StoreDiagnosis> OpenDiagnosis() { return nullptr; }
  // Null: it tells nobody of changes, or is not to.
  virtual std::unique_ptr<ChangeFeed> OpenChanges(IsWatched) { return nullptr; }
  // What the feed that is open hears of writes.
  virtual const HeardWrites& Heard() const {
    static const HeardWrites nothing;
    return nothing;
  }
};

}  // namespace millrace::engine
