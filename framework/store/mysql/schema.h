// Its parts: schema.cc, schema_check.cc and upgrade.cc.
#pragma once

#include "framework/store/mysql/session.h"
#include "framework/store/sql/schema.h"

namespace millrace::engine::mysql {

class MysqlSchemaStore final : public sql::SqlSchemaStore {
 public:
  explicit MysqlSchemaStore(const Endpoint& endpoint)
      : SqlSchemaStore(session_), endpoint_(endpoint), session_(endpoint, endpoint.options.lease) {}

  std::string Print(const SchemaSpec& spec) const override;
  Status Apply(const SchemaSpec& spec) override;
  Result<std::uint32_t> Upgrade(const UpgradeCalls& calls) override;
  Status ReadBeyond(std::vector<TableInfo>& tables) override;
  Status Resize(const TableName& table, std::uint32_t slices) override;
  Result<std::vector<SchemaFinding>> Check() override;

 private:
  Result<std::vector<std::uint64_t>> Strays(const TableName& table, std::uint32_t slices,
                                            std::size_t limit) override;
  // Instant: the rows stay as they are.
  Status SetDefault(const TableName& table, std::uint32_t slices);

  const Endpoint& endpoint_;
  Session session_;
};

}  // namespace millrace::engine::mysql
