// The schema of an SQLite shard. One thread at a time.
#pragma once

#include "framework/store/schema_store.h"
#include "framework/store/sqlite/connection.h"

namespace millrace::engine {

class SqliteSchemaStore final : public SchemaStore {
 public:
  explicit SqliteSchemaStore(SqliteFile& file) : file_(file), db_(file) {}

  std::string Print(const SchemaSpec& spec) const override;
  // Makes the file too, where there is none.
  Status Apply(const SchemaSpec& spec) override;
  Result<std::uint32_t> Upgrade() override;
  Result<std::vector<TableInfo>> Tables() override;
  Status Resize(const TableName& table, std::uint32_t slices) override;
  Result<std::size_t> RenumberStep(const TableName& table, std::size_t limit) override;
  Result<std::vector<SchemaFinding>> Check() override;

 private:
  Result<std::uint32_t> Version();
  Result<std::vector<TableInfo>> ReadTables();

  SqliteFile& file_;
  SqliteConnection db_;
};

}  // namespace millrace::engine
