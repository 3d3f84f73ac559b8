#include "coordinator/app/query_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace {
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
    EXPECT_THAT(checked.error().message, HasSubstr("--from-query: "));
  }
  EXPECT_THAT(CheckQuery("delete from t").error().message, HasSubstr("not with DELETE"));
}

}  // namespace
}  // namespace millrace
