// The schema of a shard: printed, applied, upgraded, checked.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/result.h"

namespace millrace {

inline constexpr std::uint32_t kSchemaVersion = 1;

struct SchemaSpec {
  std::uint32_t tables = 1;   // 1: `tasks`; more: `tasks_000`, `tasks_001`, … (at most 1000)
  std::uint32_t slices = 64;  // load-balance numbers a table, at most kMaxSlices
};
std::vector<std::string> TableNames(const SchemaSpec& spec);

struct TableInfo {
  std::string table;
  std::uint32_t slices = 0;
};

struct SchemaFinding {
  std::string what;  // the table, column, index or statement
  std::string problem;
  std::string remedy;
};

class SchemaStore {
 public:
  virtual ~SchemaStore() = default;

  // The DDL as text that the database's own client can run. Touches no connection.
  virtual std::string Print(const SchemaSpec& spec) const = 0;
  // Makes what is missing; existing tables stay as they are. Conflict if they have another number of slices.
  virtual Status Apply(const SchemaSpec& spec) = 0;
  // Brings an older schema to kSchemaVersion; returns the version it was. Invalid if it is a newer one.
  virtual Result<std::uint32_t> Upgrade() = 0;
  // The task tables of this shard, by name; NotFound with what to type if the schema was never applied.
  virtual Result<std::vector<TableInfo>> Tables() = 0;
  // Compares the live tables with what this program expects, and explains the hot statements on a seeded
  // scratch table. Empty: all is well.
  virtual Result<std::vector<SchemaFinding>> Check() = 0;
};

}  // namespace millrace
