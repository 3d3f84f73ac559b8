#include "framework/store/sql_guard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace millrace::engine {
namespace {

class AllowedSqlTest : public testing::TestWithParam<const char*> {};
class RefusedSqlTest : public testing::TestWithParam<const char*> {};

TEST_P(AllowedSqlTest, Passes) {
  const Status status = GuardSql(GetParam());
  EXPECT_TRUE(status.has_value()) << GetParam() << ": " << (status ? "" : status.error().message);
}

TEST_P(RefusedSqlTest, IsRefusedAsInvalid) {
  const Status status = GuardSql(GetParam());
  ASSERT_FALSE(status.has_value()) << GetParam();
  EXPECT_EQ(status.error().code, ErrorCode::Invalid);
}

INSTANTIATE_TEST_SUITE_P(
    Sql, AllowedSqlTest,
    testing::Values(
        "SELECT 1", "  select points from points_account where customer_id=?", "(SELECT 1) UNION (SELECT 2)",
        "((select 1))", "UPDATE t SET a=1;", "UPDATE t SET a=1 ; \n ;", "DELETE FROM t",
        "INSERT INTO t VALUES ('; COMMIT', \"x;y\", `a;b`)", "INSERT INTO t VALUES ('it''s; COMMIT')",
        "REPLACE INTO t VALUES (1)", "WITH a AS (SELECT 1) SELECT * FROM a", "VALUES (1)", "CALL p(?)",
        "-- why\nSELECT 1", "--why\nSELECT 1", "# why\nSELECT 1", "/* COMMIT; */ SELECT /* ; x */ 1",
        "SELECT 1 -- ; COMMIT", "SELECT '/*!COMMIT*/'", "SELECT /*+ NO_ICP(t) */ 1", "SET @total = 1",
        "SET @a = (SELECT 1, 2), @b := 'x,y'", "DO 1", "SELECT 'a\\\\', 1",
        "SELECT * FROM t WHERE a IN (1) FOR UPDATE", "SELECT JSON_EXTRACT(params, '$[0]') FROM t",
        "SELECT get_lock, widget_lock(1) FROM t", "SELECT 'GET_LOCK(1)'", "SELECT IS_FREE_LOCK('a')"));

INSTANTIATE_TEST_SUITE_P(
    TransactionControl, RefusedSqlTest,
    testing::Values("COMMIT", "commit;", "  COMMIT", "\tRollback", "BEGIN", "START TRANSACTION", "END",
                    "SAVEPOINT a", "RELEASE SAVEPOINT millrace", "ROLLBACK TO SAVEPOINT millrace",
                    "XA START 'x'", "LOCK TABLES t READ", "UNLOCK TABLES", "SET autocommit=1",
                    "SET @@autocommit = 1", "SET SESSION autocommit=1", "SET @a=1, autocommit=1",
                    "SET @a=(SELECT 1), @@session.autocommit=1", "SET TRANSACTION READ ONLY",
                    "SET STATEMENT max_statement_time=1 FOR COMMIT", "SET", "SET @a=1,"));

INSTANTIATE_TEST_SUITE_P(SessionLocks, RefusedSqlTest,
                         testing::Values("SELECT GET_LOCK('a', 1)", "DO get_lock('a', 1)",
                                         "UPDATE t SET a = 1 WHERE GET_LOCK ('a', 1)",
                                         "SELECT 1+GET_LOCK/* x */('a', 1)"));

INSTANTIATE_TEST_SUITE_P(Ddl, RefusedSqlTest,
                         testing::Values("CREATE TABLE t (a INT)", "DROP TABLE t", "ALTER TABLE t ADD a INT",
                                         "TRUNCATE t", "TRUNCATE TABLE t", "RENAME TABLE a TO b",
                                         "GRANT ALL ON *.* TO a", "CREATE TEMPORARY TABLE t (a INT)",
                                         "ANALYZE TABLE t", "OPTIMIZE TABLE t", "FLUSH TABLES", "VACUUM",
                                         "REINDEX"));

INSTANTIATE_TEST_SUITE_P(
    Disguises, RefusedSqlTest,
    testing::Values("/* x */COMMIT", "/**/ /* SELECT */ COMMIT", "-- x\nCOMMIT", "--x\nCOMMIT", "#x\nCOMMIT",
                    "/*!COMMIT*/", "/*!50000 COMMIT */", "/*M! COMMIT */", "/*M!100000COMMIT*/",
                    "/*!99999 SELECT 1 */ COMMIT", "SELECT 1 /*! ; COMMIT */", "(COMMIT)", "((\n/*x*/COMMIT",
                    "SELECT 1; COMMIT", "SELECT 1;COMMIT", "SELECT ';'; COMMIT", "SELECT '\\'; COMMIT; --'",
                    "SELECT '\\'' ; COMMIT", "SELECT 1 --x\n; COMMIT", "SELECT 1 --; COMMIT",
                    "SELECT 1 # '\n; COMMIT", "SELECT [a'b]; COMMIT --'", "; COMMIT",
                    "\xEF\xBB\xBF"
                    "COMMIT",
                    "COM/**/MIT", "PREPARE s FROM 'COMMIT'", "EXECUTE IMMEDIATE 'COMMIT'",
                    "BEGIN NOT ATOMIC COMMIT; END", "IF 1 THEN COMMIT; END IF", "USE mysql",
                    "PRAGMA journal_mode=DELETE", "ATTACH 'x' AS y", "KILL 1", "SHUTDOWN",
                    "LOAD DATA INFILE 'x' INTO TABLE t", "HANDLER t OPEN"));

INSTANTIATE_TEST_SUITE_P(Rubbish, RefusedSqlTest,
                         testing::Values("", "   ", "-- only a comment", "/* open", "123", "'text'", "@a",
                                         "/", "("));

TEST(SqlGuardTest, ANulByteIsRefused) {
  EXPECT_FALSE(GuardSql(std::string_view("SELECT 1\0; COMMIT", 17)).has_value());
}

TEST(SqlGuardTest, SaysWhatIsWrongAndWhatToDo) {
  EXPECT_THAT(GuardSql("commit").error().message, testing::HasSubstr("COMMIT would end"));
  EXPECT_THAT(GuardSql("drop table x").error().message, testing::HasSubstr("outside of handlers"));
}

TEST(SqlGuardTest, ALongTextIsReadInOnePass) {
  std::string sql = "INSERT INTO t VALUES ";
  for (int i = 0; i < 50'000; ++i) sql += "(?, 'x''y'),";
  sql += "(?, 'z')";
  EXPECT_TRUE(GuardSql(sql).has_value());
}

}  // namespace
}  // namespace millrace::engine
