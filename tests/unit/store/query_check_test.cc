#include "framework/store/query_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::HasSubstr;

TEST(QueryCheckTest, TakesWhatReads) {
  for (const char* sql : {"SELECT 1", "  select id FROM t;", "(SELECT 1) UNION (SELECT 2)", "VALUES (1)",
                          "\nWITH t AS (SELECT 1) SELECT * FROM t"}) {
    EXPECT_TRUE(CheckQuery(sql).has_value()) << sql;
  }
}

TEST(QueryCheckTest, RefusesWhatChangesOrIsSeveral) {
  for (const char* sql : {"", "DELETE FROM t", "INSERT INTO t VALUES (1)", "CALL p()", "SET @a = 1", "COMMIT",
                          "-- a comment\nSELECT 1", "SELECTED", "SELECT 1; DELETE FROM t", "SELECT 1; COMMIT",
                          "SELECT /*!99999 1; */ 2"}) {
    const auto checked = CheckQuery(sql);
    ASSERT_FALSE(checked.has_value()) << sql;
    EXPECT_EQ(checked.error().code, ErrorCode::Invalid);
  }
  EXPECT_THAT(CheckQuery("delete from t").error().message, HasSubstr("not with DELETE"));
}

// No rollback takes a file back.
TEST(QueryCheckTest, RefusesWhatWouldWriteAFileBeforeItIsSent) {
  for (const char* sql : {"SELECT 1 INTO OUTFILE '/tmp/x'",
                          "SELECT 1 into\tdumpfile '/tmp/x'",
                          "SELECT id INTO/**/OUTFILE 'x' FROM t",
                          "SELECT 1\n--\nINTO OUTFILE 'x'",
                          "SELECT 1 --1\n INTO OUTFILE 'x'",
                          R"(SELECT '\'' INTO OUTFILE 'x')",
                          "SELECT 'a'''INTO OUTFILE 'x'",
                          R"(SELECT "'" INTO OUTFILE 'x')",
                          "SELECT `'` INTO OUTFILE 'x' FROM t",
                          "SELECT 1.5INTO OUTFILE 'x'",
                          "SELECT 1e5INTO OUTFILE 'x'",
                          R"(SELECT \NINTO OUTFILE 'x')",
                          "(SELECT 1)INTO OUTFILE 'x'",
                          "SELECT 1 # '\nINTO OUTFILE 'x'",
                          "SELECT 1 /* ' */ INTO @a",
                          "SELECT '/*', 1 INTO OUTFILE 'x' -- */",
                          "SELECT 1 [ INTO OUTFILE 'x' ]",
                          "WITH t AS (SELECT 1) SELECT * FROM t INTO OUTFILE 'x'",
                          "SELECT 1 /*!INTO OUTFILE 'x'*/",
                          "SELECT 1 /*M!100000 INTO OUTFILE 'x'*/",
                          "SELECT 1 /*!50000 INTO*/ OUTFILE 'x'",
                          "SELECT 1) AS q INTO OUTFILE 'x' FROM (SELECT 2"}) {
    EXPECT_FALSE(CheckQuery(sql).has_value()) << sql;
  }
  for (const char* sql : {"SELECT 'INTO' AS a", "SELECT `into` FROM t", "SELECT 1 -- INTO",
                          "SELECT 1 /* INTO */", "SELECT into_account FROM t", "SELECT intolerant FROM t"}) {
    EXPECT_TRUE(CheckQuery(sql).has_value()) << sql;
  }
}

TEST(QueryCheckTest, SeesATableThatItIsToFill) {
  for (const char* sql : {"SELECT id FROM tasks", "SELECT id FROM `Tasks` t", "SELECT tasks.id FROM tasks,x",
                          "SELECT id FROM tasks_all"}) {
    EXPECT_TRUE(MentionsTable(sql, "tasks")) << sql;
  }
  for (const char* sql :
       {"SELECT id FROM subtasks", "SELECT id FROM tasks_failed", "SELECT tasksize FROM t"}) {
    EXPECT_FALSE(MentionsTable(sql, "tasks")) << sql;
  }
}

}  // namespace
}  // namespace millrace::engine
