#include <boost/algorithm/string/replace.hpp>
#include <map>

#include "framework/base/random.h"
#include "framework/store/mysql/ddl.h"
#include "framework/store/mysql/due_text.h"
#include "framework/store/mysql/rehearsal.h"
#include "framework/store/mysql/schema.h"
#include "framework/store/mysql/settle.h"
#include "framework/store/mysql/sql_text.h"

namespace millrace::engine::mysql {
namespace {

using Findings = std::vector<SchemaFinding>;
// What the server says of one column, index or constraint, by its name.
using Facts = std::map<std::string, std::string>;

constexpr int kScratchRows = 4000;

// MySQL keeps a literal's character set with it, and writes another one when the table is altered.
std::string WithoutCharacterSets(std::string text) {
  for (const char* set : {"_utf8mb4", "_utf8mb3", "_latin1", "_ascii"}) {
    boost::replace_all(text, set + std::string("\\'"), "\\'");
  }
  return text;
}

// Makes the tables that this program would make, under names of their own, and lets the server describe both:
// so the comparison holds whatever a server prints for a type or a default.
class Checker {
 public:
  Checker(Session& session, const Endpoint& endpoint)
      : session_(session), endpoint_(endpoint), prefix_("zz" + Random::FromSystem().Hex(8) + "_") {}
  ~Checker() {
    for (auto name = scratch_.rbegin(); name != scratch_.rend(); ++name) {
      const bool view = name->ends_with("_all");
      (void)session_.Write((view ? "DROP VIEW IF EXISTS " : "DROP TABLE IF EXISTS ") + *name);
    }
    (void)session_.Query("SELECT RELEASE_LOCK(" + Quote(prefix_) + ")", [](const Row&) {});
  }

  Result<Findings> Run(const std::vector<TableInfo>& tables) {
    LockPrefix();
    BOOST_OUTCOME_TRYV(Compare(ShardTables(prefix_), prefix_, ""));
    std::map<std::uint32_t, TableName> models;
    for (const TableInfo& info : tables) {
      auto [model, is_new] = models.try_emplace(info.slices, Scratch(std::to_string(info.slices)));
      if (is_new) {
        BOOST_OUTCOME_TRYV(Make(TaskTables(model->second, info.slices)));
      }
      for (const char* pool : {"", "_done", "_failed", "_all"}) {
        BOOST_OUTCOME_TRYV(CompareTable(model->second + pool, info.table + pool));
      }
    }
    if (!models.empty()) {
      BOOST_OUTCOME_TRYV(ExplainAll(models.begin()->second, models.begin()->first));
    }
    // On tables that are not as they should be the statements would only say so again.
    if (!models.empty() && findings_.empty()) {
      BOOST_OUTCOME_TRY(planned, Rehearsal(session_, models.begin()->second).Run(endpoint_));
      findings_ = std::move(planned);
    }
    return std::move(findings_);
  }

 private:
  // While the lock of its prefix is held, its tables are no leftovers (diagnosis.cc); it goes with the
  // session. Some clusters of servers refuse such locks; then it is taken for one that was killed while it
  // runs.
  void LockPrefix() {
    (void)session_.Query("SELECT GET_LOCK(" + Quote(prefix_) + ",0)", [](const Row&) {});
  }
  // The prefix is made so that what follows it gives a table's name.
  TableName Scratch(const std::string& rest) const { return ParseTableName(prefix_ + rest).value(); }
  Status Make(const std::vector<Ddl>& ddls) {
    for (const Ddl& ddl : ddls) {
      scratch_.push_back(ddl.name);
      BOOST_OUTCOME_TRYV(session_.Write(ddl.sql));
    }
    return {};
  }
  Status Compare(const std::vector<Ddl>& ddls, const std::string& prefix, const std::string& live_prefix) {
    BOOST_OUTCOME_TRYV(Make(ddls));
    for (const Ddl& ddl : ddls) {
      BOOST_OUTCOME_TRYV(CompareTable(ddl.name, live_prefix + ddl.name.substr(prefix.size())));
    }
    return {};
  }
  Result<Facts> Describe(const std::string& table);
  Status CompareTable(const std::string& model, const std::string& live);
  Status Seed(const TableName& table, std::uint32_t slices);
  Status ExplainAll(const TableName& table, std::uint32_t slices);
  Status Explain(const std::string& what, const std::string& sql, const std::string& key,
                 const std::string& extra, const std::string& forbidden, const TableName& table);

  Session& session_;
  const Endpoint& endpoint_;
  const std::string prefix_;
  std::vector<std::string> scratch_;
  Findings findings_;
};

Result<Facts> Checker::Describe(const std::string& table) {
  Facts facts;
  const std::string here = " WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME=" + Quote(table);
  const auto note = [&](const Row& row) {
    std::string text = row.Text(2);
    boost::replace_all(text, table, "TABLE");
    std::string name = row.Text(1);
    boost::replace_all(name, table, "TABLE");
    facts[name] = WithoutCharacterSets(std::move(text));
  };
  for (const std::string& sql :
       {"SELECT CONCAT('column ',COLUMN_NAME),CONCAT_WS(' ',COLUMN_TYPE,IF(IS_NULLABLE='YES','NULL','NOT "
        "NULL'),"
        "COALESCE(COLLATION_NAME,''),COALESCE(CONCAT('DEFAULT ',COLUMN_DEFAULT),''),EXTRA,"
        "COALESCE(GENERATION_EXPRESSION,'')) FROM information_schema.COLUMNS" +
            here,
        "SELECT CONCAT('index ',INDEX_NAME),CONCAT(GROUP_CONCAT(COLUMN_NAME ORDER BY SEQ_IN_INDEX),"
        "IF(MIN(NON_UNIQUE)=0,' unique','')) FROM information_schema.STATISTICS" +
            here + " GROUP BY INDEX_NAME",
        "SELECT CONCAT('constraint ',c.CONSTRAINT_NAME),c.CHECK_CLAUSE FROM "
        "information_schema.CHECK_CONSTRAINTS c JOIN "
        "information_schema.TABLE_CONSTRAINTS t ON t.CONSTRAINT_SCHEMA=c.CONSTRAINT_SCHEMA AND "
        "t.CONSTRAINT_NAME=c.CONSTRAINT_NAME WHERE t.CONSTRAINT_TYPE='CHECK' AND t.TABLE_SCHEMA=DATABASE() "
        "AND "
        "t.TABLE_NAME=" +
            Quote(table)}) {
    BOOST_OUTCOME_TRYV(session_.Query(sql, note));
  }
  return facts;
}

Status Checker::CompareTable(const std::string& model, const std::string& live) {
  BOOST_OUTCOME_TRY(expected, Describe(model));
  BOOST_OUTCOME_TRY(found, Describe(live));
  if (found.empty()) {
    findings_.push_back({live, "it does not exist", "run `millrace schema apply`"});
    return {};
  }
  for (const auto& [name, text] : expected) {
    const auto other = found.find(name);
    // An older table's successor takes the rows that it had.
    const bool may_lack = name == std::string("constraint TABLE_") + kParamsObject;
    if (other == found.end() && may_lack) continue;
    if (other == found.end()) {
      findings_.push_back(
          {live, "the " + name + " is missing: " + text, "add it as `millrace schema print` shows"});
    } else if (other->second != text) {
      findings_.push_back({live, "the " + name + " is `" + other->second + "`, expected `" + text + "`",
                           "change it as `millrace schema print` shows"});
    }
  }
  return {};
}

Status Checker::Seed(const TableName& table, std::uint32_t slices) {
  std::string rows;
  for (int i = 1; i <= kScratchRows; ++i) {
    rows += (i == 1 ? "(" : ",(") + std::to_string(i) + "," +
            std::to_string(static_cast<unsigned>(i) % slices % 8) + "," + (i % 2 == 0 ? "'a'" : "'b'") +
            ",UTC_TIMESTAMP(6) - INTERVAL " + std::to_string(i) + " SECOND)";
  }
  BOOST_OUTCOME_TRYV(session_.Write("INSERT INTO " + table + " (id,slice,handler,run_at) VALUES " + rows));
  return session_.Query("ANALYZE TABLE " + table, [](const Row&) {});
}

Status Checker::Explain(const std::string& what, const std::string& sql, const std::string& key,
                        const std::string& extra, const std::string& forbidden, const TableName& table) {
  std::string used;
  std::string how;
  // Columns of EXPLAIN differ between servers in number, not in name; the table's own line is looked at.
  BOOST_OUTCOME_TRYV(session_.Query(kExplainInRows + sql, [&](const Row& row) {
    if (row.Named("table") != table || !used.empty()) return;
    used = row.Named("key");
    how = row.Named("Extra");
  }));
  const bool wrong = used != key || (!extra.empty() && how.find(extra) == std::string::npos) ||
                     (!forbidden.empty() && how.find(forbidden) != std::string::npos);
  if (!wrong) return {};
  findings_.push_back({"the statement of the " + what,
                       "the server plans it over the index `" + used + "` with `" + how + "`, expected `" +
                           key + "`" + (extra.empty() ? "" : " with `" + extra + "`"),
                       "check the server's optimizer_switch against its defaults"});
  return {};
}

Status Checker::ExplainAll(const TableName& table, std::uint32_t slices) {
  BOOST_OUTCOME_TRYV(Seed(table, slices));
  const TableSlices all{.table = table};
  const TableSlices some{.table = table, .all = false, .slices = {0, 2, 3}};
  const TableSlices group_of{.table = table, .all = false, .slices = {0, 2, 3}, .handlers = {{"a", "b"}}};
  const DueGroup group{.table = table, .slice = 0, .handler = "a", .urgency = 50};
  const ScanRequest scan{
      .group = group, .after = {WallTime(std::chrono::hours(24 * 365 * 30)), 1}, .limit = 100};
  std::vector<ScanRequest> joined(64, scan);
  for (std::uint32_t slice = 0; slice < joined.size(); ++slice) joined[slice].group.slice = slice;
  // A range of neighbours, and as many that are none.
  std::vector<std::uint64_t> ids;
  for (std::uint64_t id = 1; id <= kMaxBatchRows; ++id) ids.push_back(id <= kMaxBatchRows / 2 ? id : 2 * id);
  const std::string rows = WithIds(ids);
  Random random = Random::FromSystem();
  const sql::Claimer claimer{sql::DrawNumber(random), prefix_};
  Settlement one{.key = {table, 1}, .attempt = 1, .text = "why"};
  const SettleGroup settle{.table = table, .attempt = 1, .rows = {&one}};
  const SettleGroup failed{
      .table = table, .to = Settlement::To::Failed, .failed_attempt = true, .rows = {&one}};
  struct Plan {
    const char* what;
    std::string sql, key, extra, forbidden;
  };
  const Plan plans[] = {
      {"due map", DueText(all), "due", "for group-by", "filesort"},
      {"due map of some slices", DueText(some), "due", "for group-by", "filesort"},
      {"due map of some handlers", DueText(group_of), "due", "for group-by", "filesort"},
      {"due map beside tasks", DueText(some, false, kNoTask), "due", "for group-by", "filesort"},
      {"due tasks by id", RowsText(some, rows), "PRIMARY", "", "filesort"},
      {"scan", ScanText(scan), "due", "", "filesort"},
      {"scan of some slices", ScanJoinedText(joined, 100), "due", "", "filesort"},
      {"claim", ClaimText(table, rows, claimer.number, 0), "PRIMARY", "", "filesort"},
      {"settle, moving", MoveText(settle, claimer, rows), "PRIMARY", "", "filesort"},
      {"settle, moving a failed one", MoveText(failed, claimer, rows), "PRIMARY", "", "filesort"},
      {"settle, deleting", DeleteText(settle, claimer.number, rows), "PRIMARY", "", "filesort"},
      {"settle, waiting", WaitText(settle, claimer.number, rows), "PRIMARY", "", "filesort"},
  };
  // Servers look constants up while they plan: a claim for nobody would be explained as impossible.
  Transaction transaction(session_);
  BOOST_OUTCOME_TRYV(session_.Begin());
  BOOST_OUTCOME_TRYV(session_.Write(
      "INSERT INTO millrace_incarnations (id,number,worker,host,pid,lease_us,slices) VALUES (" +
      Quote(prefix_) + "," + std::to_string(claimer.number) + ",'schema check','',0,0,'')"));
  for (const Plan& plan : plans) {
    BOOST_OUTCOME_TRYV(Explain(plan.what, plan.sql, plan.key, plan.extra, plan.forbidden, table));
  }
  return {};
}

}  // namespace

Result<std::vector<SchemaFinding>> MysqlSchemaStore::Check() {
  BOOST_OUTCOME_TRY(schema, ReadSchema(session_));
  BOOST_OUTCOME_TRYV(CheckNotLater(schema, session_));
  BOOST_OUTCOME_TRYV(CheckVersion(schema.state, session_.where()));
  return Checker(session_, endpoint_).Run(schema.tables);
}

}  // namespace millrace::engine::mysql
