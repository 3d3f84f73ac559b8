// How many slices a table has, changed while it is worked on. The functions that write run inside a
// transaction that the caller has open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/store/schema_store.h"
#include "framework/store/sqlite/connection.h"

namespace millrace::engine {

// The number of slices that the table has; 0: it was never made.
Result<std::uint32_t> SlicesOf(SqliteConnection& db, const TableName& table);
// The slices that rows stand in beyond that number, sorted.
Result<std::vector<std::uint32_t>> SlicesBeyond(SqliteConnection& db, const TableInfo& info);
// Invalid where somebody has changed the default of the column by hand.
Status ResizeTable(SqliteConnection& db, const TableName& table, std::uint32_t slices);
Result<std::size_t> RenumberRows(SqliteConnection& db, const TableName& table, std::size_t limit);

}  // namespace millrace::engine
