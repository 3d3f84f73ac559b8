// The cold statements are written once: these are the two steps from such a text to what a database is sent.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "framework/store/mysql/settle.h"
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

TEST(StatementTextTest, ManyNeighboursAreARangeThatEndsBeforeItsLastRow) {
  std::vector<std::uint64_t> ids{3};
  EXPECT_EQ(mysql::WithIds(ids), "id IN (3)");
  for (std::uint64_t id = 10; id < 41; ++id) ids.push_back(id);
  EXPECT_EQ(mysql::WithIds(ids), "id IN (" + mysql::List(ids) + ")") << "31 are few";
  ids.push_back(41);
  EXPECT_EQ(mysql::WithIds(ids), "(id BETWEEN 10 AND 40 OR id IN (3,41))");
  ids.push_back(43);
  for (std::uint64_t id = 100; id < 900; ++id) ids.push_back(id);
  EXPECT_EQ(mysql::WithIds(ids), "(id BETWEEN 10 AND 40 OR id BETWEEN 100 AND 898 OR id IN (3,41,43,899))");
  EXPECT_EQ(mysql::WithIds(std::span(ids).last(800)), "(id BETWEEN 100 AND 898 OR id IN (899))");
}

TEST(StatementTextTest, AValueByIdIsFoundByHalves) {
  const std::vector<mysql::FromId> parts{{1, "'a'"}, {5, "'b'"}, {9, "'c'"}};
  EXPECT_EQ(mysql::ById(std::span(parts).first(1)), "'a'");
  EXPECT_EQ(mysql::ById(parts), "IF(id<5,'a',IF(id<9,'b','c'))");
}

// Each retry with a delay of its own: the text grows with the rows, and so does not what a row is compared
// with.
TEST(StatementTextTest, AThousandDifferentDelaysAreALinearText) {
  const auto text_of = [](std::size_t rows) {
    std::vector<Settlement> batch(rows);
    std::vector<const Settlement*> pointers;
    for (std::size_t i = 0; i < rows; ++i) {
      batch[i].key.id = 1000 + i;
      batch[i].to = Settlement::To::Waiting;
      batch[i].delay = std::chrono::milliseconds(1000 + i);
      pointers.push_back(&batch[i]);
    }
    const auto groups = mysql::GroupSettlements(pointers);
    EXPECT_EQ(groups.size(), 1U);
    return mysql::WaitText(groups.front(), 7, "id=1");
  };
  const std::string text = text_of(512);
  EXPECT_LT(text_of(999).size(), 2 * text.size());
  std::size_t depth = 0;
  std::size_t deepest = 0;
  for (const char c : text) {
    depth += c == '(';
    deepest = std::max(deepest, depth);
    depth -= c == ')';
  }
  EXPECT_LE(deepest, 11U) << "log2 of the rows, and one for the list of ids";
}

}  // namespace
}  // namespace millrace::engine
