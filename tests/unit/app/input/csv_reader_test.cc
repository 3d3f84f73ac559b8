#include "coordinator/app/input/csv_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<CsvRecord> ReadAll(const std::string& text) {
  std::istringstream input(text);
  CsvReader reader(input);
  std::vector<CsvRecord> records;
  while (auto record = reader.Next()) records.push_back(std::move(*record));
  return records;
}

TEST(CsvReaderTest, ReadsQuotesLineBreaksAndBothLineEnds) {
  const auto records = ReadAll("a,b\r\n\"x,\"\"y\"\"\nz\",2\nlast,");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_THAT(records[0].fields, ElementsAre("a", "b"));
  EXPECT_THAT(records[1].fields, ElementsAre("x,\"y\"\nz", "2"));
  EXPECT_EQ(records[1].line, 2u);
  EXPECT_THAT(records[2].fields, ElementsAre("last", ""));
  EXPECT_EQ(records[2].line, 4u);
}

TEST(CsvReaderTest, DropsAByteOrderMarkAndEmptyLines) {
  const auto records = ReadAll("\xEF\xBB\xBFid\n\n\r\n7\n");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].fields[0], "id");
  EXPECT_EQ(records[1].line, 4u);
}

TEST(CsvReaderTest, GoesOnBehindABadRecord) {
  const auto records = ReadAll("\"a\"b,1\nx\"y,2\ngood,3\n");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_THAT(records[0].problem, HasSubstr("text follows a closing quote"));
  EXPECT_THAT(records[1].problem, HasSubstr("within an unquoted field"));
  EXPECT_EQ(records[2].problem, "");
}

TEST(CsvReaderTest, AQuoteThatIsNeverClosedIsNamedByItsFirstLine) {
  const auto records = ReadAll("a\n\"b\nc\nd\n");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[1].line, 2u);
  EXPECT_THAT(records[1].problem, HasSubstr("never closed"));
}

// They are good rows, of which nobody would ever miss one.
TEST(CsvReaderTest, RowsThatAQuoteTookForItsTextAreSaid) {
  const auto records = ReadAll("a\n1,\"Smith\n2,x\n3,\"O'Neil\"\n4,y\n");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].line, 2u);
  EXPECT_THAT(records[1].problem, HasSubstr("what stands to line 4 was taken for this row"));
  EXPECT_THAT(records[2].fields, ElementsAre("4", "y"));
  EXPECT_THAT(ReadAll("\"a\"b\nc\n")[0].problem, testing::Not(HasSubstr("was taken for")));
  std::string endless = "a\n1,\"";
  for (int i = 0; i < 200'000; ++i) endless += "row,row\n";
  const auto cut = ReadAll(endless);
  ASSERT_EQ(cut.size(), 2u);
  EXPECT_THAT(cut[1].problem, HasSubstr("never closed"));
  EXPECT_THAT(cut[1].problem, HasSubstr("what stands to line 200002 was taken for this row"));
}

TEST(CsvReaderTest, ALongRowIsReadToItsEndWhateverStandsInItsQuotes) {
  const std::string text(CsvReader::kLongestRecord, 'x');
  const auto records = ReadAll("a,b\n\"" + text + "\n2,x\n\",\"y\n3,x\n\"\n4,y\n");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(records[1].line, 2u);
  EXPECT_THAT(records[1].problem,
              testing::AllOf(HasSubstr("longer than 1 MiB"), HasSubstr("what stands to line 6 was taken")));
  EXPECT_THAT(records[2].fields, ElementsAre("4", "y"));
}

TEST(CsvReaderTest, AnEmptyFileHasNoRecords) { EXPECT_TRUE(ReadAll("").empty()); }

// Full-width letters, Arabic forms: their first bytes are those of the mark.
TEST(CsvReaderTest, WhatOnlyBeginsLikeAByteOrderMarkIsText) {
  EXPECT_THAT(ReadAll("ＩＤ,n\n")[0].fields, ElementsAre("ＩＤ", "n"));
  EXPECT_THAT(ReadAll("\xEF\xBB\x80,n\n")[0].fields, ElementsAre("\xEF\xBB\x80", "n"));
}

TEST(CsvReaderTest, ALoneCarriageReturnBehindAClosingQuoteEatsNothing) {
  const auto records = ReadAll("\"a\"\rb,1\ngood,2\n");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_THAT(records[0].problem, HasSubstr("carriage return"));
  EXPECT_THAT(records[1].fields, ElementsAre("good", "2"));
}

}  // namespace
}  // namespace millrace::engine
