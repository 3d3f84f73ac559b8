// Compares a live SQLite schema with the one that this program expects, and asks for the plans of the
// statements that every poll runs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/store/schema_store.h"
#include "framework/store/sqlite/session.h"

namespace millrace::engine::sqlite {

Result<std::vector<SchemaFinding>> CheckSchema(Session& db, const std::vector<TableInfo>& tables);

struct HotStatement {
  std::string name;
  std::string sql;
  std::size_t values = 0;
  // The columns by which it must search, as SQLite's plan names them: "slice=? AND handler>?".
  std::string bounds;
};

// What is wrong with the statement's plan; nullopt: nothing. A search that leaves out one of the columns
// reads rows only to throw them away, which nothing but the plan shows.
std::optional<std::string> PlanFault(Session& db, const HotStatement& hot);

}  // namespace millrace::engine::sqlite
