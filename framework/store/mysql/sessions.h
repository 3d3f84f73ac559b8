// How the store makes its sessions; each is in a file of its own. Those without a pool have a connection of
// their own: the beat must wait for nobody, and the schema's statements SET what they need.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "framework/store/mysql/session.h"
#include "framework/store/sql/claimers.h"
#include "framework/store/store.h"

namespace millrace::engine::mysql {

std::unique_ptr<TaskStore> OpenTasks(const Endpoint& endpoint, ConnectionPool& pool, sql::Claimers& claimers);
std::unique_ptr<TaskTransaction> OpenTransaction(const Endpoint& endpoint, ConnectionPool& pool,
                                                 sql::Claimers& claimers, Micros limit);
std::unique_ptr<OverviewStore> OpenOverview(const Endpoint& endpoint, ConnectionPool& pool);
std::unique_ptr<SchemaStore> OpenSchema(const Endpoint& endpoint);
std::unique_ptr<StoreDiagnosis> OpenDiagnosis(const Endpoint& endpoint);
// Counts how often the beats have a connection again after the server did not take them, perhaps to another
// one.
using Returns = std::shared_ptr<std::atomic<std::uint64_t>>;
std::unique_ptr<ChangeFeed> OpenBinlogFeed(Endpoint endpoint, IsWatched watched, Returns returns,
                                           HeardWritesPtr writes);

}  // namespace millrace::engine::mysql
