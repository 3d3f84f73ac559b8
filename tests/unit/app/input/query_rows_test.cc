#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "coordinator/app/input/input_rows.h"
#include "framework/testing/manual_clock.h"
#include "framework/testing/scratch_store.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class QueryRowsTest : public testing::Test {
 protected:
  Result<std::unique_ptr<InputRows>> Open(const std::string& query, const std::string& key_column = "id") {
    InputRules rules;
    rules.defaults.handler = "noop";
    rules.key_column = key_column;
    rules.key_prefix = "may-";
    return RowsInPages(store_, query, rules, 3);
  }
  // The keys of all rows; of a bad one what is wrong with it.
  std::vector<std::string> All(InputRows& rows) {
    std::vector<std::string> all;
    std::size_t line = 0;
    while (const auto row = rows.Next()) {
      EXPECT_EQ(row->line, ++line);
      all.push_back(row->task ? row->task->biz_key : row->task.error().message);
    }
    return all;
  }

  const SystemClock clock_{};
  const std::shared_ptr<ScratchStore> store_ = std::make_shared<ScratchStore>(clock_);
};

TEST_F(QueryRowsTest, AllPagesOfAQueryAreRows) {
  store_->Run(
      "CREATE TABLE c (id INTEGER, name TEXT); INSERT INTO c VALUES (4,'d'),(2,'b'),(1,'a'),(3,'c'),(5,'e')");
  const auto rows = Open("SELECT id, name FROM c");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_THAT(All(**rows), ElementsAre("may-1", "may-2", "may-3", "may-4", "may-5"));
}

TEST_F(QueryRowsTest, RowsWithoutAKeyAreBadOnes) {
  store_->Run("CREATE TABLE c (id TEXT); INSERT INTO c VALUES ('b'),(NULL),('a'),('')");
  const auto rows = Open("SELECT id FROM c");
  ASSERT_TRUE(rows) << rows.error().message;
  EXPECT_THAT(All(**rows), ElementsAre(HasSubstr("'id' is empty in this row"),
                                       HasSubstr("'id' is empty in this row"), "may-a", "may-b"));
}

TEST_F(QueryRowsTest, OfVeryManyRowsWithoutAKeySomeAreTold) {
  store_->Run(
      "CREATE TABLE c (id INTEGER); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE "
      "i<1500) "
      "INSERT INTO c SELECT NULL FROM n; INSERT INTO c VALUES (7)");
  const auto rows = Open("SELECT id FROM c");
  ASSERT_TRUE(rows) << rows.error().message;
  const auto all = All(**rows);
  ASSERT_EQ(all.size(), kRowsWithoutKey + 1);
  EXPECT_THAT(all[kRowsWithoutKey - 1], HasSubstr("and in more that are not looked at"));
  EXPECT_EQ(all.back(), "may-7");
}

TEST_F(QueryRowsTest, WhatIsWrongWithTheQueryIsToldAtOnce) {
  store_->Run("CREATE TABLE c (id INTEGER)");
  EXPECT_THAT(Open("SELECT id FROM c", "key").error().message,
              HasSubstr("there is no column 'key' for --key-column"));
  EXPECT_THAT(Open("SELECT id FROM nowhere").error().message, HasSubstr("nowhere"));
  store_->Run("INSERT INTO c VALUES (1.5)");
  EXPECT_THAT(Open("SELECT id FROM c").error().message, HasSubstr("floating-point"));
}

TEST_F(QueryRowsTest, APageThatCanNotBeReadIsTheLastRow) {
  store_->Run("CREATE TABLE c (id INTEGER); INSERT INTO c VALUES (1),(2),(3),(4)");
  const auto rows = Open("SELECT id FROM c");
  ASSERT_TRUE(rows) << rows.error().message;
  store_->Run("DROP TABLE c");
  EXPECT_THAT(All(**rows), ElementsAre("may-1", "may-2", "may-3", HasSubstr("can't be read from here on")));
}

}  // namespace
}  // namespace millrace::engine
