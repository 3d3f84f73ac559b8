// What is asked for a diagnosis alike on every database.
#pragma once

#include <span>
#include <vector>

#include "framework/store/diagnosis.h"
#include "framework/store/sql/connection.h"

namespace millrace::engine::sql {

// The failed and the finished pool of each of these tables beside its counters. Counts at most kPoolSample +
// 1 rows of each.
Result<std::vector<PoolSample>> SamplePools(Connection& db, std::span<const TableInfo> tables);

}  // namespace millrace::engine::sql
