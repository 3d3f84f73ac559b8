// The schema on a real server: what is printed runs, what is there is checked.
#include <cstdio>
#include <cstdlib>

#include "tests/integration/store/store_faults.h"

namespace millrace::engine {
namespace {

class MysqlSchema : public StoreFaults {};

std::string Text(const std::vector<SchemaFinding>& findings) {
  std::string text;
  for (const SchemaFinding& one : findings) text += one.what + ": " + one.problem + "\n";
  return text;
}

TEST_F(MysqlSchema, CheckFindsNothingInWhatApplyMade) {
  auto findings = direct_->OpenSchema()->Check();
  ASSERT_TRUE(findings) << findings.error().message;
  EXPECT_TRUE(findings->empty()) << Text(*findings);
  EXPECT_EQ(Count("information_schema.TABLES WHERE TABLE_SCHEMA=DATABASE() AND TABLE_NAME LIKE 'zz%'"), 0U);
}

TEST_F(MysqlSchema, ApplyAgainChangesNothingAndOtherSlicesAreRefused) {
  auto schema = direct_->OpenSchema();
  Add(2);
  ASSERT_TRUE(schema->Apply({.tables = 1, .slices = 4}));
  EXPECT_EQ(Count("tasks"), 2U);
  const Status other = schema->Apply({.tables = 1, .slices = 8});
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::Conflict);
  auto tables = schema->Tables();
  ASSERT_TRUE(tables);
  ASSERT_EQ(tables->size(), 1U);
  EXPECT_EQ((*tables)[0].slices, 4U);
}

TEST_F(MysqlSchema, CheckNamesWhatIsMissingOrDifferent) {
  sql_->Ask("ALTER TABLE tasks DROP KEY due");
  sql_->Ask("ALTER TABLE tasks MODIFY priority INT NOT NULL DEFAULT 4");
  sql_->Ask("DROP TABLE millrace_audit");
  auto findings = direct_->OpenSchema()->Check();
  ASSERT_TRUE(findings) << findings.error().message;
  const std::string text = Text(*findings);
  EXPECT_NE(text.find("index due is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("column priority"), std::string::npos) << text;
  EXPECT_NE(text.find("millrace_audit: it does not exist"), std::string::npos) << text;
}

TEST_F(MysqlSchema, PrintedTextRunsInThePlainClient) {
  TestDatabase fresh;
  const std::string file = std::string(std::getenv("TMPDIR") ? std::getenv("TMPDIR") : "/tmp") + "/" +
                           fresh.url().database + ".sql";
  FILE* out = std::fopen(file.c_str(), "w");
  const std::string text = direct_->OpenSchema()->Print({.tables = 3, .slices = 16});
  std::fwrite(text.data(), 1, text.size(), out);
  std::fclose(out);
  const std::string password = ReadPasswordFile(fresh.password_file()).value();
  const std::string command = "MYSQL_PWD=" + password + " mariadb --no-defaults -h 127.0.0.1 -P " +
                              std::to_string(fresh.url().port) + " -u " + fresh.url().user + " " +
                              fresh.url().database + " <" + file;
  EXPECT_EQ(std::system(command.c_str()), 0);
  std::remove(file.c_str());
  SqlConnection sql(fresh.url(), fresh.password_file());
  EXPECT_EQ(sql.Ask("SELECT GROUP_CONCAT(task_table ORDER BY task_table) FROM millrace_schema"),
            ",tasks_000,tasks_001,tasks_002");
  sql.Ask("INSERT INTO tasks_002 (handler, params) VALUES ('award_points', '{\"payment_id\":1}')");
  EXPECT_EQ(sql.Ask("SELECT state FROM tasks_002_all"), "0");
}

TEST_F(MysqlSchema, ConstraintsRefuseWhatNoTaskMayBe) {
  for (const char* values :
       {"'noop','not json',5,0", "'noop','[]',5,0", "'Noop','{}',5,0", "'noop','{}',10,0", "'noop','{}',5,2",
        "CONCAT('noop',CHAR(10)),'{}',5,0", "CONCAT('noop',CHAR(0)),'{}',5,0", "'','{}',5,0"}) {
    EXPECT_FALSE(
        sql_->Run(std::string("INSERT INTO tasks (handler,params,priority,state) VALUES (") + values + ")"));
  }
  EXPECT_FALSE(sql_->Run(
      "INSERT INTO tasks (handler,params) VALUES ('noop', CONCAT('{\"x\":\"',REPEAT('x',65536),'\"}'))"));
  for (const char* priority : {"10", "26", "99", "255", "256"}) {
    const auto refused =
        sql_->Run("INSERT INTO tasks (handler,priority) VALUES ('noop'," + std::string(priority) + ")");
    ASSERT_FALSE(refused) << priority;
    EXPECT_NE(refused.error().message.find("priority"), std::string::npos) << refused.error().message;
  }
  EXPECT_FALSE(sql_->Run("INSERT INTO tasks (handler,slice) VALUES ('noop',16384)"));
  EXPECT_TRUE(sql_->Run("INSERT INTO tasks (handler) VALUES ('noop')"));
}

TEST_F(MysqlSchema, CheckNamesAConstraintOfNoKnownForm) {
  sql_->Ask("ALTER TABLE tasks DROP CONSTRAINT tasks_handler_name");
  sql_->Ask("ALTER TABLE tasks ADD CONSTRAINT tasks_handler_name CHECK (handler REGEXP '^[a-z]')");
  auto findings = direct_->OpenSchema()->Check();
  ASSERT_TRUE(findings) << findings.error().message;
  EXPECT_NE(Text(*findings).find("constraint TABLE_handler"), std::string::npos) << Text(*findings);
}

}  // namespace
}  // namespace millrace::engine
