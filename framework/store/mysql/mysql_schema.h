// Its parts: schema.cc (print, apply, tables), schema_upgrade.cc,
// schema_check.cc and slices.cc.
#pragma once

#include "framework/store/mysql/session.h"
#include "framework/store/schema_store.h"

namespace millrace::engine::mysql {

class MysqlSchemaStore final : public SchemaStore {
 public:
  explicit MysqlSchemaStore(const Endpoint& endpoint)
      : endpoint_(endpoint), session_(endpoint, endpoint.options.lease) {}

  std::string Print(const SchemaSpec& spec) const override;
  Status Apply(const SchemaSpec& spec) override;
  Result<std::uint32_t> Upgrade() override;
  Result<std::vector<TableInfo>> Tables() override;
  Status Resize(const TableName& table, std::uint32_t slices) override;
  Result<std::size_t> RenumberStep(const TableName& table, std::size_t limit) override;
  Result<std::vector<SchemaFinding>> Check() override;

 private:
  Result<std::vector<TableInfo>> ReadTables();  // without `beyond`
  Status ReadBeyond(std::vector<TableInfo>& tables);
  Result<std::uint32_t> SlicesOf(const TableName& table);

  const Endpoint& endpoint_;
  Session session_;
};

// `millrace_schema` names a table that may not stand in SQL.
Error NoTableName(const Session& session, const std::string& name);

}  // namespace millrace::engine::mysql
