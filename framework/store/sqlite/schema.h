// The schema of an SQLite shard. One thread at a time.
#pragma once

#include "framework/store/sql/schema.h"
#include "framework/store/sqlite/session.h"

namespace millrace::engine::sqlite {

class SqliteSchemaStore final : public sql::SqlSchemaStore {
 public:
  explicit SqliteSchemaStore(File& file) : SqlSchemaStore(db_), file_(file), db_(file) {}

  std::string Print(const SchemaSpec& spec) const override;
  // Makes the file too, where there is none.
  Status Apply(const SchemaSpec& spec) override;
  Result<std::uint32_t> Upgrade() override;
  // Invalid where somebody has changed the default of the column by hand.
  Status Resize(const TableName& table, std::uint32_t slices) override;
  Result<std::vector<SchemaFinding>> Check() override;

 private:
  Status ReadBeyond(std::vector<TableInfo>& tables) override;
  Result<std::vector<std::uint64_t>> Strays(const TableName& table, std::uint32_t slices,
                                            std::size_t limit) override;
  Status RewriteTable(const TableName& table, const std::string& text);

  File& file_;
  Session db_;
};

}  // namespace millrace::engine::sqlite
