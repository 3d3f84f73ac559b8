// The schema of a shard, as far as it is asked and changed alike on every database.
#pragma once

#include "framework/store/schema_store.h"
#include "framework/store/sql/connection.h"

namespace millrace::engine::sql {

// What millrace_schema says.
struct SchemaRows {
  std::uint32_t version = 0;
  std::string applied_at;         // the schema, for the first time
  std::vector<TableInfo> tables;  // without `beyond`
  std::vector<TableName> behind;  // those that are of an older version than this program's
};

class SqlSchemaStore : public SchemaStore {
 public:
  explicit SqlSchemaStore(Connection& db) : db_(db) {}

  Result<std::vector<TableInfo>> Tables() override;
  Result<std::string> Identity() override;
  Result<std::size_t> RenumberStep(const TableName& table, std::size_t limit) override;

 protected:
  // NotFound with what to type if the schema was never applied; Invalid where it names what can't be a table.
  static Result<SchemaRows> ReadSchema(Connection& db);
  // Its tables; Invalid if it is of another version.
  Result<std::vector<TableInfo>> Current();
  // Invalid for numbers that no shard may have.
  static Status CheckSpec(const SchemaSpec& spec);
  // Whether Apply may make what is missing: Conflict where a table has another number of slices.
  Status CheckApply(const SchemaSpec& spec);
  // NotFound for an unknown table.
  Result<std::uint32_t> SlicesOf(const TableName& table);
  Status SetNumber(const TableName& table, std::uint32_t slices);

 private:
  // Fills `beyond`, from the end of the due index: the rows within the slices cost nothing.
  virtual Status ReadBeyond(std::vector<TableInfo>& tables) = 0;
  // Waiting and held rows that stand in slices from this one on.
  virtual Result<std::vector<std::uint64_t>> Strays(const TableName& table, std::uint32_t slices,
                                                    std::size_t limit) = 0;

  Connection& db_;
};

}  // namespace millrace::engine::sql
