// The sessions of a store whose statements are the same on every database; each is in a file of its own.
#pragma once

#include <memory>

#include "framework/base/random.h"
#include "framework/store/sql/claimers.h"
#include "framework/store/sql/connection.h"
#include "framework/store/store.h"

namespace millrace::engine::sql {

// `random` draws the numbers of those that register; `claimers` learns them.
std::unique_ptr<IncarnationStore> OpenIncarnations(std::unique_ptr<Connection> connection, Claimers& claimers,
                                                   Random random = Random::FromSystem());
std::unique_ptr<PruneStore> OpenPruning(std::unique_ptr<Connection> connection);

}  // namespace millrace::engine::sql
