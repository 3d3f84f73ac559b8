#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <span>

#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/schema.h"
#include "framework/store/mysql/sessions.h"
#include "framework/store/mysql/settle.h"
#include "framework/store/mysql/sql_text.h"
#include "framework/store/sql/diagnosis.h"

namespace millrace::engine::mysql {
namespace {

// Of a shard with more task tables the first are looked at.
constexpr std::size_t kMostTables = 32;

// What a worker does with each table (conf/grants.sql grants just this), and a column of it.
struct Need {
  const char* table;
  const char* rights;
  const char* column;
};
constexpr Need kOfTheShard[] = {
    {"millrace_schema", "S", "task_table"},   {"millrace_incarnations", "SIUD", "id"},
    {"millrace_beats", "SIUD", "id"},         {"tasks_keys", "SIUD", "task_id"},
    {"millrace_attempts", "SIUD", "attempt"}, {"millrace_counters", "SIUD", "failed"},
    {"millrace_pauses", "S", "what"},         {"millrace_audit", "SI", "subject"},
    {"millrace_schedules", "SIUD", "fired"},  {"millrace_fan_outs", "SIUD", "refused"},
    {"millrace_batches", "SU", "added"},      {"millrace_permits", "SIU", "turn"}};
constexpr Need kOfATable[] = {{"", "SIUD", "state"}, {"_done", "SID", "state"}, {"_failed", "SID", "state"}};

struct Probe {
  const char* right;
  std::string text;
};

// Statements that the server checks and plans, and that would do nothing.
Probe ProbeOf(char right, const std::string& table, const std::string& column) {
  switch (right) {
    case 'S':
      return {"SELECT", "SELECT " + column + " FROM " + table + " WHERE 1=0"};
    case 'I':
      // IGNORE: columns without a default are no matter.
      return {"INSERT", "INSERT IGNORE INTO " + table + " (" + column + ") SELECT 0 FROM DUAL WHERE 1=0"};
    case 'U':
      return {"UPDATE", "UPDATE " + table + " SET " + column + "=" + column + " WHERE 1=0"};
    default:
      return {"DELETE", "DELETE FROM " + table + " WHERE 1=0"};
  }
}

class MysqlDiagnosis final : public StoreDiagnosis {
 public:
  explicit MysqlDiagnosis(const Endpoint& endpoint)
      : session_(endpoint, endpoint.options.lease), schema_(OpenSchema(endpoint)) {}

  Result<StoreFacts> Examine(const DiagnosisOptions& options) override;
  Result<WallTime> Now() override {
    std::optional<WallTime> now;
    BOOST_OUTCOME_TRYV(session_.Query("SELECT UTC_TIMESTAMP(6)", [&](const Row& row) { now = row.Time(1); }));
    return now.value_or(WallTime{});
  }

 private:
  Status ReadSettings(StoreFacts& facts);
  void ReadTables(StoreFacts& facts, std::span<const TableInfo> tables);
  void ReadLeftovers(StoreFacts& facts);
  void ReadHistory(StoreFacts& facts);
  void ReadTransactions(StoreFacts& facts);
  void ProbeRights(StoreFacts& facts, const std::string& table, const Need& need);
  void Explain(StoreFacts& facts, const TableInfo& table);
  // What was asked is known, or named as unknown.
  void Ask(StoreFacts& facts, const char* what, const std::string& sql, const Session::OnRow& on_row);

  Session session_;
  const std::unique_ptr<SchemaStore> schema_;
};

void MysqlDiagnosis::Ask(StoreFacts& facts, const char* what, const std::string& sql,
                         const Session::OnRow& on_row) {
  if (Status asked = session_.Query(sql, on_row); !asked) {
    const bool right = session_.last_code() == kNoPrivilege;
    facts.unknown.push_back({what, right
                                       ? "it takes the right PROCESS, which conf/grants.sql has as an option"
                                       : asked.error().message});
  }
}

Status MysqlDiagnosis::ReadSettings(StoreFacts& facts) {
  const auto into = [](std::map<std::string, std::string>& map) {
    return [&map](const Row& row) {
      std::string name = row.Text(1);
      std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
      map[name] = row.Text(2);
    };
  };
  BOOST_OUTCOME_TRYV(
      session_.Query("SELECT VERSION()", [&](const Row& row) { facts.version = row.Text(1); }));
  facts.flavour = facts.version.find("MariaDB") == std::string::npos ? Flavour::Mysql : Flavour::Mariadb;
  BOOST_OUTCOME_TRYV(session_.Query(
      "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('binlog_format','binlog_row_image',"
      "'group_replication_group_name','group_replication_single_primary_mode','innodb_flush_log_at_trx_"
      "commit',"
      "'innodb_lock_wait_timeout','log_bin','max_allowed_packet','max_connections','read_only','sync_binlog',"
      "'transaction_isolation','tx_isolation','wsrep_on')",
      into(facts.settings)));
  Ask(facts, "the server's counters",
      "SHOW GLOBAL STATUS WHERE Variable_name IN ('Innodb_history_list_length','Max_used_connections',"
      "'Threads_connected','wsrep_cluster_size')",
      into(facts.counters));
  return {};
}

void MysqlDiagnosis::ReadTables(StoreFacts& facts, std::span<const TableInfo> tables) {
  std::string names;
  for (const Need& need : kOfTheShard) names += (names.empty() ? "" : ",") + Quote(need.table);
  for (const TableInfo& info : tables) {
    for (const Need& need : kOfATable) names += "," + Quote(info.table + need.table);
  }
  Ask(facts, "the sizes of the tables",
      "SELECT TABLE_NAME,DATA_LENGTH+INDEX_LENGTH,DATA_FREE FROM information_schema.TABLES WHERE "
      "TABLE_SCHEMA=DATABASE() AND TABLE_NAME IN (" +
          names + ")",
      [&](const Row& row) {
        facts.tables.push_back({row.Text(1), row.Number(2), row.Number(3)});
      });
}

// Named as schema_check.cc names its tables, whose lock nobody holds: whoever made them is gone.
void MysqlDiagnosis::ReadLeftovers(StoreFacts& facts) {
  Ask(facts, "tables that a check has left behind",
      "SELECT p,COUNT(*) FROM (SELECT SUBSTRING_INDEX(TABLE_NAME,'_',1) AS p FROM information_schema.TABLES "
      "WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME REGEXP '^zz[0-9a-f]{8}([0-9a-f]{8})?_') AS t "
      "GROUP BY p HAVING IS_FREE_LOCK(CONCAT(p,'_'))=1",
      [&](const Row& row) { facts.leftovers[row.Text(1) + "_"] = row.Number(2); });
}

void MysqlDiagnosis::ReadHistory(StoreFacts& facts) {
  constexpr const char* kName = "innodb_history_list_length";
  if (const auto counter = facts.counters.find(kName); counter != facts.counters.end()) {
    facts.history = std::strtoull(counter->second.c_str(), nullptr, 10);
    return;
  }
  Ask(facts, "the row versions that wait to be purged",
      "SELECT COUNT FROM information_schema.INNODB_METRICS WHERE NAME='trx_rseg_history_len'",
      [&](const Row& row) { facts.history = row.Number(1); });
}

// The server tells the beginning of each in a time zone of its own, so that one that begins now is the
// measure.
void MysqlDiagnosis::ReadTransactions(StoreFacts& facts) {
  if (!session_.Begin()) return;
  const Transaction transaction(session_);
  if (!session_.Query("SELECT COUNT(*) FROM millrace_schema", [](const Row&) {})) return;
  Ask(facts, "the oldest transaction",
      "SELECT TIMESTAMPDIFF(MICROSECOND,MIN(trx_started),MAX(trx_started)) FROM "
      "information_schema.INNODB_TRX",
      [&](const Row& row) { facts.oldest_transaction = Micros(row.Signed(1)); });
}

void MysqlDiagnosis::ProbeRights(StoreFacts& facts, const std::string& table, const Need& need) {
  for (const char* right = need.rights; *right != '\0'; ++right) {
    const Probe probe = ProbeOf(*right, table, need.column);
    const Status planned = session_.Query(kExplainInRows + probe.text, [](const Row&) {});
    if (planned) continue;
    const int code = session_.last_code();
    if (code == kNoSuchTable) {
      // Said once, in the schema's own words.
      facts.schema.push_back(
          {table, "it does not exist", "run millrace schema apply, which makes what is missing"});
      return;
    }
    if (LacksRight(code)) {
      facts.missing_rights.push_back({probe.right, table});
    } else {
      facts.unknown.push_back(
          {std::string("the right ") + probe.right + " on " + table, planned.error().message});
    }
  }
}

// The hot statements on the live tables: what the server refuses to plan would stop every worker. With which
// plan it would run them, the tables' present content decides; that is told by seeded ones alone.
void MysqlDiagnosis::Explain(StoreFacts& facts, const TableInfo& info) {
  const TableName& table = info.table;
  const DueGroup group{.table = table, .slice = 0, .handler = "a", .urgency = 50};
  Settlement one{.key = {table, 1}, .attempt = 1};
  const SettleGroup settle{.table = table, .attempt = 1, .rows = {&one}};
  const sql::Claimer nobody{1, "nobody"};
  const std::pair<const char*, std::string> statements[] = {
      {"due map", DueText({.table = table})},
      {"scan", ScanText({.group = group, .limit = 100})},
      {"claim", ClaimText(table, "id IN (1,2)", nobody.number, 0)},
      {"settle, moving", MoveText(settle, nobody, "id=1")},
      {"settle, deleting", DeleteText(settle, nobody.number, "id=1")},
      {"settle, waiting", WaitText(settle, nobody.number, "id=1")}};
  for (const auto& [what, text] : statements) {
    const Status planned = session_.Query(kExplainInRows + text, [](const Row&) {});
    const int code = session_.last_code();
    // Tables and rights that are missing were found before.
    if (planned || code == kNoSuchTable || LacksRight(code)) continue;
    facts.schema.push_back(
        {std::string("the statement of the ") + what + " on " + std::string(table.text()),
         "the server refuses it: " + planned.error().message,
         "compare the table with `millrace schema print`; `millrace doctor --scratch` names "
         "what differs"});
  }
}

Result<StoreFacts> MysqlDiagnosis::Examine(const DiagnosisOptions& options) {
  StoreFacts facts;
  BOOST_OUTCOME_TRYV(ReadSettings(facts));
  const std::size_t before = facts.schema.size();
  for (const Need& need : kOfTheShard) ProbeRights(facts, need.table, need);
  auto tables = schema_->Tables();
  if (!tables) {
    // What hides the tables may have been named already.
    if (facts.schema.size() == before && facts.missing_rights.empty())
      facts.schema.push_back(
          {"the task tables", tables.error().message,
           "compare them with `millrace schema print`, or make them with `millrace schema apply`"});
    return facts;
  }
  if (tables->size() > kMostTables) {
    facts.unknown.push_back({"the later task tables of " + std::to_string(tables->size()),
                             "the first " + std::to_string(kMostTables) + " are looked at"});
    tables->erase(tables->begin() + kMostTables, tables->end());
  }
  for (const TableInfo& info : *tables) {
    for (const Need& need : kOfATable) ProbeRights(facts, info.table + need.table, need);
    Explain(facts, info);
  }
  ReadTables(facts, *tables);
  ReadLeftovers(facts);
  ReadHistory(facts);
  ReadTransactions(facts);
  if (auto pools = sql::SamplePools(session_, *tables)) {
    facts.pools = std::move(*pools);
  } else if (facts.missing_rights.empty() && facts.schema.empty()) {
    facts.unknown.push_back({"the counters beside the pools", pools.error().message});
  }
  if (!options.scratch) return facts;
  auto checked = schema_->Check();
  if (checked) {
    for (SchemaFinding& finding : *checked) facts.schema.push_back(std::move(finding));
  } else {
    facts.unknown.push_back({"the schema's form and the statements' plans", checked.error().message});
  }
  return facts;
}

}  // namespace

std::unique_ptr<StoreDiagnosis> OpenDiagnosis(const Endpoint& endpoint) {
  return std::make_unique<MysqlDiagnosis>(endpoint);
}

}  // namespace millrace::engine::mysql
