#include "framework/store/mysql/ddl.h"
#include "framework/store/mysql/schema.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

// A statement that copies a table answers when it is done.
constexpr Micros kLongestStatement = std::chrono::hours(24);
// For a table that others have open. Whoever waits for it holds up all who come later.
constexpr const char* kBriefWait = "SET SESSION lock_wait_timeout=5";

Endpoint Patient(Endpoint endpoint) {
  endpoint.options.io_timeout = kLongestStatement;
  return endpoint;
}

Status Run(Session& session, const std::string& sql) {
  BOOST_OUTCOME_TRYV(session.Write(sql));
  return {};
}

// Version 1 bound `slice` by the table's own number of slices, so that it could never grow.
Status WidenSlices(Session& session, const TableName& table) {
  const std::string name = table + "_slice";
  std::string clause;
  BOOST_OUTCOME_TRYV(
      session.Query("SELECT CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS WHERE "
                    "CONSTRAINT_SCHEMA=DATABASE() AND CONSTRAINT_NAME=" +
                        Quote(name),
                    [&](const Row& row) { clause = row.Text(1); }));
  const std::string bound = std::to_string(kMaxSlices);
  if (clause.find(bound) != std::string::npos) return {};
  if (!clause.empty()) {
    BOOST_OUTCOME_TRYV(Run(session, "ALTER TABLE " + table + " DROP CONSTRAINT " + name));
  }
  return Run(session, "ALTER TABLE " + table + " ADD CONSTRAINT " + name + " CHECK (slice < " + bound + ")");
}

// The row of the table, or that of the shard itself.
Status Note(Session& session, const std::optional<TableName>& table) {
  return Run(session,
             "UPDATE millrace_schema SET version=" + std::to_string(kSchemaVersion) +
                 ", applied_at=UTC_TIMESTAMP(6) WHERE task_table=" + (table ? Quote(*table) : Quote("")));
}

}  // namespace

Result<std::uint32_t> MysqlSchemaStore::Upgrade() {
  const Endpoint patient = Patient(endpoint_);
  Session session(patient, endpoint_.options.lease);
  BOOST_OUTCOME_TRY(schema, ReadSchema(session));
  if (schema.version > kSchemaVersion) return Fail(CheckVersion(schema.version, session.where()).error());
  if (schema.version == kSchemaVersion) return schema.version;
  BOOST_OUTCOME_TRYV(Run(session, kBriefWait));
  for (const Ddl& ddl : ShardTables("")) {
    BOOST_OUTCOME_TRYV(Run(session, ddl.sql));
  }
  // Each table is noted when it is done: a second run goes on behind it.
  for (const TableName& table : schema.behind) {
    BOOST_OUTCOME_TRYV(WidenSlices(session, table));
    BOOST_OUTCOME_TRYV(Note(session, table));
  }
  BOOST_OUTCOME_TRYV(Note(session, std::nullopt));
  return schema.version;
}

}  // namespace millrace::engine::mysql
