#include "framework/store/mysql/ddl.h"
#include "framework/store/mysql/mysql_schema.h"
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
  auto done = session.Write(sql);
  if (!done) return Fail(done.error());
  return {};
}

// Version 1 bound `slice` by the table's own number of slices, so that it could never grow.
Status WidenSlices(Session& session, const TableName& table) {
  const std::string name = table + "_slice";
  std::string clause;
  Status read = session.Query(
      "SELECT CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS WHERE "
      "CONSTRAINT_SCHEMA=DATABASE() AND CONSTRAINT_NAME=" +
          Quote(name),
      [&](const Row& row) { clause = row.Text(1); });
  if (!read) return read;
  const std::string bound = std::to_string(kMaxSlices);
  if (clause.find(bound) != std::string::npos) return {};
  if (!clause.empty()) {
    if (Status gone = Run(session, "ALTER TABLE " + table + " DROP CONSTRAINT " + name); !gone) return gone;
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
  std::uint32_t version = 0;
  std::vector<TableName> behind;
  std::optional<Error> forged;
  Status read = session.Query("SELECT task_table,version FROM millrace_schema ORDER BY task_table",
                              [&](const Row& row) {
                                const std::string name = row.Text(1);
                                const auto its = static_cast<std::uint32_t>(row.Number(2));
                                if (name.empty()) version = its;
                                if (name.empty() || its >= kSchemaVersion) return;
                                const auto table = ParseTableName(name);
                                if (table) behind.push_back(*table);
                                if (!table && !forged) forged = NoTableName(session, name);
                              });
  if (!read && session.last_code() != kNoSuchTable) return Fail(read.error());
  if (forged) return Fail(*forged);
  if (version == 0) {
    return Fail(ErrorCode::NotFound,
                session.where() + ": there are no task tables: run `millrace schema apply`");
  }
  if (version > kSchemaVersion) return Fail(CheckVersion(version, session.where()).error());
  if (version == kSchemaVersion) return version;
  if (Status brief = Run(session, kBriefWait); !brief) return Fail(brief.error());
  for (const Ddl& ddl : ShardTables("")) {
    if (Status made = Run(session, ddl.sql); !made) return Fail(made.error());
  }
  // Each table is noted when it is done: a second run goes on behind it.
  for (const TableName& table : behind) {
    if (Status widened = WidenSlices(session, table); !widened) return Fail(widened.error());
    if (Status noted = Note(session, table); !noted) return Fail(noted.error());
  }
  if (Status noted = Note(session, std::nullopt); !noted) return Fail(noted.error());
  return version;
}

}  // namespace millrace::engine::mysql
