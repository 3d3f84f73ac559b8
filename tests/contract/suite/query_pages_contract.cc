#include <gmock/gmock.h>

#include <algorithm>

#include "tests/contract/suite/store_contract.h"

namespace millrace::engine {

bool QueryPagesContract::IsMysql() { return store().Describe().starts_with("mysql"); }

void QueryPagesContract::Run(const std::string& text) {
  const auto done = sql().NewClient()->Run(text);
  ASSERT_TRUE(done) << text << ": " << done.error().message;
}

void QueryPagesContract::Fill(const std::string& type, const std::vector<std::string>& values) {
  Run("DROP TABLE IF EXISTS src");
  Run("CREATE TABLE src (k " + type + ", n INTEGER)");
  for (std::size_t i = 0; i < values.size(); ++i)
    Run("INSERT INTO src VALUES (" + values[i] + "," + std::to_string(i) + ")");
  Run("CREATE INDEX src_k ON src (k)");
}

QueryPages QueryPagesContract::Pages(const std::string& query, std::vector<std::string> keys,
                                     std::size_t limit, std::optional<QueryPlace> after) {
  return QueryPages(store().OpenTransaction(std::chrono::seconds(5)), query, std::move(keys), limit,
                    std::move(after));
}

Result<std::vector<std::string>> QueryPagesContract::All(QueryPages& pages) {
  std::vector<std::string> numbers;
  for (int page = 0; page < 100 && !pages.ended(); ++page) {
    BOOST_OUTCOME_TRY(rows, pages.Next());
    const auto n = std::find(rows.columns.begin(), rows.columns.end(), "n") - rows.columns.begin();
    for (const SqlCells& row : rows.rows)
      numbers.push_back(row.at(static_cast<std::size_t>(n)).value_or("NULL"));
  }
  EXPECT_TRUE(pages.ended());
  return numbers;
}

std::vector<std::string> QueryPagesContract::Numbers(const std::string& query, std::vector<std::string> keys,
                                                     std::size_t limit) {
  QueryPages pages = Pages(query, std::move(keys), limit);
  auto all = All(pages);
  EXPECT_TRUE(all) << query << ": " << all.error().message;
  return all ? *all : std::vector<std::string>();
}

std::string QueryPagesContract::Refusal(const std::string& query, std::vector<std::string> keys,
                                        std::size_t limit) {
  QueryPages pages = Pages(query, std::move(keys), limit);
  const auto all = All(pages);
  EXPECT_FALSE(all) << query;
  return all ? "" : all.error().message;
}

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> UpTo(std::size_t count) {
  std::vector<std::string> numbers;
  for (std::size_t i = 0; i < count; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

struct KeysOfType {
  const char* type;
  std::vector<std::string> values;  // in the order of the database
  bool ties = false;                // some of them are the same to its collation
};

TEST_P(QueryPagesContract, EachRowComesOnceInTheOrderOfTheKeyWhateverItsType) {
  const std::vector<std::string> whole = {
      "-9223372036854775807", "-1", "0", "9007199254740992", "9007199254740993", "9007199254740994",
      "9223372036854775807"};
  const std::vector<KeysOfType> of_mysql = {
      {"BIGINT", whole},
      {"BIGINT UNSIGNED",
       {"0", "9223372036854775807", "18446744073709551613", "18446744073709551614", "18446744073709551615"}},
      {"DECIMAL(40,20)",
       {"-0.5", "0.10000000000000000001", "0.10000000000000000002", "0.10000000000000000003",
        "12345678901234567890.1"}},
      {"DATETIME(6)",
       {"'2026-11-22 18:00:00'", "'2026-11-22 18:00:00.000001'", "'2026-11-22 18:00:00.000002'",
        "'2026-11-22 18:00:00.000003'", "'2026-11-22 18:00:01'"}},
      {"TIMESTAMP(6) NULL",
       {"'2026-03-29 01:00:00'", "'2026-03-29 02:30:00.5'", "'2026-03-29 02:30:00.500001'",
        "'2026-10-25 02:30:00'"}},
      {"DATE", {"'1999-12-31'", "'2026-02-28'", "'2026-03-01'", "'9999-12-31'"}},
      {"TIME(6)", {"'-01:00:00.5'", "'00:00:00'", "'00:00:00.000001'", "'00:00:00.000002'", "'100:00:00'"}},
      {"YEAR", {"1999", "2000", "2001", "2026"}},
      {"VARBINARY(20)", {"X'00'", "X'0027'", "X'275C'", "X'FF'", "X'FFFE'"}},
      {"VARCHAR(40) COLLATE utf8mb4_bin", {"'A'", "'B'", "'a'", "'it''s'", "'ä'", "'漢'"}},
      {"VARCHAR(40) CHARACTER SET latin1 COLLATE latin1_bin", {"'A'", "'a'", "'b'", "'ä'"}},
      {"VARCHAR(40) COLLATE utf8mb4_general_ci", {"'a'", "'A'", "'ä'", "'b'", "'b '", "'B'", "'c'"}, true},
      {"CHAR(10) COLLATE utf8mb4_general_ci", {"'x'", "'X'", "'y'", "'z'"}, true},
  };
  const std::vector<KeysOfType> of_sqlite = {
      {"INTEGER", whole},
      {"", {"1", "2", "9007199254740993", "'1'", "'a'", "X'61'", "X'6162'"}},
      {"TEXT", {"'10'", "'2'", "'A'", "'a'", "'a '", "'it''s'", "'ä'"}},
      {"TEXT COLLATE NOCASE", {"'a'", "'A'", "'b'", "'B'", "'c'"}, true},
      {"BLOB", {"X'00'", "X'0027'", "X'FF'", "X'FFFE'"}},
      {"DATETIME", {"'2026-11-22 18:00:00'", "'2026-11-22 18:00:00.000001'", "'2026-11-22 18:00:01'"}},
  };
  for (const KeysOfType& keys : IsMysql() ? of_mysql : of_sqlite) {
    SCOPED_TRACE(keys.type);
    Fill(keys.type, keys.values);
    for (const std::size_t limit : {4U, 5U, 100U}) {
      auto numbers = Numbers("SELECT k, n FROM src", {"k"}, limit);
      if (keys.ties) {
        EXPECT_THAT(numbers, testing::UnorderedElementsAreArray(UpTo(keys.values.size())));
      } else {
        EXPECT_EQ(numbers, UpTo(keys.values.size()));
      }
    }
    if (!keys.ties) {
      EXPECT_EQ(Numbers("SELECT k, n FROM src", {"k"}, 2), UpTo(keys.values.size()));
    }
  }
}

// What another process goes on with.
TEST_P(QueryPagesContract, APlaceThatWasWrittenDownIsGoneOnFrom) {
  const std::vector<KeysOfType> all = {
      {"BIGINT", {"1", "9007199254740993", "9007199254740994", "9223372036854775807"}},
      {IsMysql() ? "VARCHAR(40) COLLATE utf8mb4_bin" : "VARCHAR(40)",
       {"'a'", "'it''s \"so\"'", "'x'", "'ä'"}},
      {IsMysql() ? "VARBINARY(9)" : "BLOB", {"X'00'", "X'27'", "X'C3'", "X'FF'"}}};
  for (const KeysOfType& keys : all) {
    SCOPED_TRACE(keys.type);
    Fill(keys.type, keys.values);
    std::vector<std::string> numbers;
    std::optional<QueryPlace> place;
    for (bool ended = false; !ended && numbers.size() < 10;) {
      QueryPages pages = Pages("SELECT k, n FROM src", {"k"}, 2, place);
      const auto page = pages.Next();
      ASSERT_TRUE(page) << page.error().message;
      for (const SqlCells& row : page->rows) numbers.push_back(*row[1]);
      ended = pages.ended();
      if (!pages.place()) continue;
      const auto read = ParsePlace(ToText(*pages.place()));
      ASSERT_TRUE(read) << ToText(*pages.place());
      EXPECT_EQ(*read, *pages.place());
      place = *read;
    }
    EXPECT_EQ(numbers, UpTo(keys.values.size()));
  }
}

TEST_P(QueryPagesContract, SeveralKeyColumnsAreOneKey) {
  Run("CREATE TABLE pairs (a INTEGER, b VARCHAR(9), n INTEGER)");
  std::string values;
  for (int i = 0; i < 12; ++i) {
    values += (i == 0 ? "(" : ",(") + std::to_string(i / 5) + ",'" + std::string(1, char('a' + i % 5)) +
              "'," + std::to_string(i) + ")";
  }
  Run("INSERT INTO pairs VALUES " + values);
  for (const std::size_t limit : {2U, 3U, 5U, 12U, 13U})
    EXPECT_EQ(Numbers("SELECT * FROM pairs", {"a", "b"}, limit), UpTo(12));
}

TEST_P(QueryPagesContract, TheQueryMayBeAnyThatReads) {
  Fill("INTEGER", {"10", "20", "30", "40", "50"});
  EXPECT_EQ(Numbers("SELECT k, n FROM src ORDER BY k DESC", {"k"}, 2), UpTo(5));
  EXPECT_EQ(Numbers("SELECT k, n FROM src ORDER BY k LIMIT 3;  \n", {"k"}, 2), UpTo(3))
      << "its LIMIT is the whole's";
  EXPECT_EQ(Numbers("SELECT k, n FROM src -- all; of them", {"k"}, 2), UpTo(5));
  EXPECT_EQ(Numbers("WITH s AS (SELECT k, n FROM src) SELECT * FROM s WHERE k > 10", {"k"}, 2),
            (std::vector<std::string>{"1", "2", "3", "4"}));
  EXPECT_EQ(Numbers("SELECT n, count(*) AS `how many`, max(k) AS k FROM src GROUP BY n", {"n"}, 2), UpTo(5));
  EXPECT_EQ(Numbers("SELECT k AS `the ``key`, n FROM src", {"the `key"}, 2), UpTo(5));
  EXPECT_THAT(Numbers("SELECT k, n FROM src WHERE k > 100", {"k"}, 2), IsEmpty());
}

TEST_P(QueryPagesContract, RowsOfOneKeyComeAllWhereTheyFitIntoAPage) {
  Fill("INTEGER", {"1", "2", "2", "2", "3", "3"});
  EXPECT_THAT(Numbers("SELECT k, n FROM src", {"k"}, 4), testing::UnorderedElementsAreArray(UpTo(6)));
  EXPECT_THAT(Refusal("SELECT k, n FROM src", {"k"}, 3), HasSubstr("more than 2 rows have the key '2'"));
  Run("UPDATE src SET n=1 WHERE k=2");
  EXPECT_EQ(Numbers("SELECT k, n FROM src", {"k"}, 4).size(), 6U) << "also those that are the same in all";
}

TEST_P(QueryPagesContract, RowsWithoutAKeyAreReadByThemselves) {
  Fill("INTEGER", {"1", "NULL", "2", "NULL"});
  EXPECT_THAT(Numbers("SELECT k, n FROM src", {"k"}, 2), ElementsAre("0", "2"));
  QueryPages pages = Pages("SELECT k, n FROM src", {"k"}, 2);
  const auto without = pages.WithoutKey(10);
  ASSERT_TRUE(without) << without.error().message;
  EXPECT_EQ(without->size(), 2U);
  EXPECT_EQ(pages.WithoutKey(1)->size(), 1U);
}

TEST_P(QueryPagesContract, AKeyWhoseOrderNoTextTellsIsRefused) {
  Fill(IsMysql() ? "DOUBLE" : "REAL", {"1.5", "2.5"});
  EXPECT_THAT(Refusal("SELECT k, n FROM src", {"k"}),
              HasSubstr("the key column 'k' is a floating-point number"));
  if (!IsMysql()) return;
  Fill("ENUM('z','a')", {"'z'", "'a'"});
  EXPECT_THAT(Refusal("SELECT k, n FROM src", {"k"}), HasSubstr("give it as CAST(… AS CHAR)"));
  EXPECT_EQ(Numbers("SELECT CAST(k AS CHAR) AS k, n FROM src", {"k"}, 2),
            (std::vector<std::string>{"1", "0"}));
}

TEST_P(QueryPagesContract, AColumnThatIsNotThereIsNamed) {
  Fill("INTEGER", {"1"});
  EXPECT_THAT(Refusal("SELECT k, n FROM src", {"customer"}),
              HasSubstr("the query gives no column 'customer'; its columns are k, n"));
  EXPECT_THAT(Refusal("SELECT k, n FROM no_such", {"k"}), HasSubstr("no_such"));
}

// Whatever it calls.
TEST_P(QueryPagesContract, APageLeavesNothingBehind) {
  Fill("INTEGER", {"1", "2", "3"});
  QueryPages pages = Pages("SELECT k, n FROM src", {"k"}, 2);
  ASSERT_TRUE(pages.Next());
  Run("DROP TABLE src");  // nobody holds it
  const auto gone = pages.Next();
  ASSERT_FALSE(gone);
  Fill("INTEGER", {"1", "2", "3"});
  const auto page = pages.Next();
  ASSERT_TRUE(page) << "after an error it goes on: " << page.error().message;
  EXPECT_EQ(page->rows.size(), 1U);
}

}  // namespace
}  // namespace millrace::engine
