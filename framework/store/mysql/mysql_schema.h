// Its parts: schema.cc (print, apply, upgrade, tables) and schema_check.cc.
#pragma once

#include "framework/store/mysql/session.h"
#include "framework/store/schema_store.h"

namespace millrace::mysql {

class MysqlSchemaStore final : public SchemaStore {
 public:
  explicit MysqlSchemaStore(const Endpoint& endpoint) : session_(endpoint, endpoint.options.lease) {}

  std::string Print(const SchemaSpec& spec) const override;
  Status Apply(const SchemaSpec& spec) override;
  Result<std::uint32_t> Upgrade() override;
  Result<std::vector<TableInfo>> Tables() override;
  Result<std::vector<SchemaFinding>> Check() override;

 private:
  Session session_;
};

}  // namespace millrace::mysql
