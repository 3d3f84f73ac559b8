// The cold statements are written once: these are the two steps from such a text to what a database is sent.
#include <gtest/gtest.h>

#include <array>

#include "framework/store/mysql/sql_text.h"
#include "framework/store/sql/dialects.h"

namespace millrace::engine {
namespace {

std::string Expanded(std::string_view text) { return sql::Expand(sql::kMysqlDialect, text); }

TEST(StatementTextTest, WordsOfTheDialectBecomeTheDatabasesOwn) {
  EXPECT_EQ(Expanded("SELECT id FROM tasks$primary WHERE id IN (1,2)$lock"),
            "SELECT id FROM tasks FORCE INDEX (PRIMARY) WHERE id IN (1,2) FOR UPDATE");
  EXPECT_EQ(Expanded("$remove(tasks_done) WHERE id=7"),
            "DELETE tasks_done FROM tasks_done FORCE INDEX (PRIMARY) WHERE id=7");
  EXPECT_EQ(Expanded("started_at<$after(?) LIMIT ?"),
            "started_at<UTC_TIMESTAMP(6) + INTERVAL ? MICROSECOND LIMIT ?");
  EXPECT_EQ(Expanded("VALUES (1,2)$upsert failed=failed+$brought(failed)"),
            "VALUES (1,2) ON DUPLICATE KEY UPDATE failed=failed+VALUES(failed)");
  EXPECT_EQ(Expanded("no words"), "no words");
}

TEST(StatementTextTest, ValuesBecomeLiteralsOnAServer) {
  const std::array<sql::Value, 7> values{
      sql::Value(-5),     "it's ? and \\", sql::Value::OrNull(""),    std::uint64_t{1} << 63,
      std::uint32_t{999}, std::string(),   sql::Value::Bytes("a\xff")};
  EXPECT_EQ(mysql::WithValues("VALUES (?,?,?,?,?,?,?)", values),
            R"(VALUES (-5,'it\'s ? and \\',NULL,9223372036854775808,999,'',x'61ff'))");
  EXPECT_DEATH((void)mysql::WithValues("VALUES (?)", values), "");
  EXPECT_DEATH((void)mysql::WithValues("VALUES (?,?,?,?,?,?,?,?)", values), "");
}

}  // namespace
}  // namespace millrace::engine
