// The sessions of a store whose statements are the same on every database; each is in a file of its own.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/random.h"
#include "framework/store/sql/claimers.h"
#include "framework/store/sql/connection.h"
#include "framework/store/store.h"

namespace millrace::engine::sql {

// `random` draws the numbers of those that register; `claimers` learns them.
std::unique_ptr<IncarnationStore> OpenIncarnations(std::unique_ptr<Connection> connection, Claimers& claimers,
                                                   Random random = Random::FromSystem());
std::unique_ptr<TaskOperations> OpenOperations(std::unique_ptr<Connection> connection);
std::unique_ptr<PruneStore> OpenPruning(std::unique_ptr<Connection> connection);
std::unique_ptr<AlertStore> OpenAlerts(std::unique_ptr<Connection> connection);
std::unique_ptr<ScheduleStore> OpenSchedules(std::unique_ptr<Connection> connection);
std::unique_ptr<FanOutStore> OpenFanOuts(std::unique_ptr<Connection> connection);
std::unique_ptr<BatchStore> OpenBatches(std::unique_ptr<Connection> connection);
std::unique_ptr<PermitStore> OpenPermits(std::unique_ptr<Connection> connection, Claimers& claimers);

// As a row of millrace_batches says it.
BatchState BatchStateOf(std::string_view text);
// As BatchStore::Announce, in a transaction that is open.
Result<bool> Announce(Connection& db, const std::string& batch, const BatchPart& part, std::int64_t rows);
// The row of a fan-out, in the transaction of its firing; nothing where the same firing has one already.
Status EnterFanOut(Connection& db, const FanOut& fan_out);
// Whether one of this schedule is under way.
Result<bool> IsFanningOut(Connection& db, const std::string& schedule);

// Rows of millrace_audit: what people did, and what the program itself has seen, whose `action`, names and
// details (a type) framework/store/alert_store.h has.
struct EventSubject {
  std::string name;
  std::string detail = {};
};
Status NoteEvents(Connection& db, std::string_view action, const std::string& actor,
                  const std::vector<EventSubject>& subjects);
// The id behind which its last `rows` stand: a look goes no further back.
Result<std::uint64_t> AuditFloor(Connection& db, std::uint64_t rows);

}  // namespace millrace::engine::sql
