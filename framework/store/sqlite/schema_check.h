// Compares a live SQLite schema with the one that this program expects, and asks for the plans of the
// statements that every poll runs.
#pragma once

#include <vector>

#include "framework/store/schema_store.h"
#include "framework/store/sqlite/session.h"

namespace millrace::engine::sqlite {

Result<std::vector<SchemaFinding>> CheckSchema(Session& db, const std::vector<TableInfo>& tables);

}  // namespace millrace::engine::sqlite
