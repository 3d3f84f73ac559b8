// The schema of a shard, as far as it is asked and changed alike on every database.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/store/schema_store.h"
#include "framework/store/sql/connection.h"

namespace millrace::engine::sql {

struct OldTable {
  TableInfo info;
  std::uint32_t version = 0;
};

// What millrace_schema says.
struct SchemaRows {
  SchemaState state;
  std::uint32_t oldest = 0;       // version of the shard and of its tables
  std::string applied_at;         // the schema, for the first time
  std::vector<TableInfo> tables;  // without `beyond`
  std::vector<OldTable> behind;   // those that are of an older version than this program's

  // Whether programs of their version can't go on beside an upgrade of the tables.
  bool Breaking() const { return oldest < kReadableBy; }
};

// An incarnation that may be alive, as far as the tables of any version say.
struct BeatSeen {
  std::string worker;
  std::string host;
  std::int64_t pid = 0;
  Micros lease{};
  std::uint64_t beat = 0;
  bool operator==(const BeatSeen&) const = default;
};
using BeatsSeen = std::map<std::string, BeatSeen>;  // by incarnation

class SqlSchemaStore : public SchemaStore {
 public:
  explicit SqlSchemaStore(Connection& db) : db_(db) {}

  Result<std::vector<TableInfo>> Tables() override;
  Result<std::string> Identity() override;
  Result<std::size_t> RenumberStep(const TableName& table, std::size_t limit) override;

 protected:
  // NotFound with what to type if the schema was never applied; Invalid where it names what can't be a table.
  static Result<SchemaRows> ReadSchema(Connection& db);
  // The same, but no later version will do: for what would make the tables as this program knows them.
  static Status CheckNotLater(const SchemaRows& schema, const Connection& db);
  // Invalid for numbers that no shard may have.
  static Status CheckSpec(const SchemaSpec& spec);
  // Whether Apply may make what is missing: Conflict where a table has another number of slices, or where the
  // schema is of another version, or where one of its names is a table of somebody else's.
  Status CheckApply(const SchemaSpec& spec);
  Status CheckOurs(const TableName& table);
  // NotFound for an unknown table.
  Result<std::uint32_t> SlicesOf(const TableName& table);
  Status SetNumber(const TableName& table, std::uint32_t slices);

  // Whether a worker beats that knows only tables of an older version: Conflict, and it is named. `since` is
  // what was seen before; without it, and where anybody may be alive, it pauses between two looks.
  static Result<BeatsSeen> CheckStill(Connection& db, const UpgradeCalls& calls,
                                      const std::optional<BeatsSeen>& since = std::nullopt);

 private:
  // Waiting and held rows that stand in slices from this one on.
  virtual Result<std::vector<std::uint64_t>> Strays(const TableName& table, std::uint32_t slices,
                                                    std::size_t limit) = 0;

  Connection& db_;
};

}  // namespace millrace::engine::sql
