#include "framework/store/row_params.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace millrace::engine {
namespace {

using testing::HasSubstr;

TEST(RowParamsTest, NumbersStayEmptyIsNullTheRestAreTexts) {
  const std::vector<JsonColumn> columns{
      {"a", NameToJson("a")}, {"b", NameToJson("b\"\xFF")}, {"c", NameToJson("c")}, {"d", NameToJson("d")}};
  const std::vector<std::optional<std::string>> cells{"2.99", "", "2005-05-25", std::nullopt};
  EXPECT_EQ(*RowToJson(columns, cells), R"({"a":2.99,"b\"�":null,"c":"2005-05-25","d":null})");
}

// The short ways for what most cells and lines are.
TEST(RowParamsTest, EveryCellIsWhatTheParserReadsOfIt) {
  for (const char* cell :
       {"0", "-0", "7", "-12", "123456789012345678", "1234567890123456789", "00", "-", "plain", "it's",
        "q\"uote", "back\\slash", "tab\t", "\x7F", "ü", "1 000", "1.5", "true"}) {
    const auto json = CellToJson(cell);
    ASSERT_TRUE(json) << cell;
    const auto value = nlohmann::json::parse(*json);
    EXPECT_EQ(value.is_string() ? value.get<std::string>() : value.dump(),
              cell[0] == '-' && cell[1] == '0' ? "0" : cell);
    EXPECT_EQ(value.is_number(), IsFaithfulNumber(cell)) << cell;
  }
}

TEST(RowParamsTest, OnlyNumbersThatReadBackAsTheyAreStayNumbers) {
  for (const char* text : {"0", "-1", "1.50", "1e3", "-0.5E-7", "18446744073709551615"}) {
    EXPECT_TRUE(IsFaithfulNumber(text)) << text;
  }
  for (const char* text : {"", "007", "+1", ".5", "1.", "1e", "0x1", "1 ", "NaN", "1e999", "1e-999", " 1",
                           "-", "1-1", "18446744073709551616", "0.12345678901234567890"}) {
    EXPECT_FALSE(IsFaithfulNumber(text)) << text;
  }
  EXPECT_FALSE(IsFaithfulNumber({"1\0002", 3}));
}

TEST(RowParamsTest, TextThatIsNotUtf8IsRefused) {
  EXPECT_THAT(CellToJson("caf\xE9").error().message,
              HasSubstr("not UTF-8: convert the file, for example with iconv -f "));
}

TEST(RowParamsTest, ATextColumnHoldsTextsWhateverTheyLookLike) {
  const std::vector<JsonColumn> columns{{"zip", NameToJson("zip"), CellType::Text}, {"n", NameToJson("n")}};
  const auto row = [&](const char* zip) {
    const std::vector<std::optional<std::string>> cells{zip, "5"};
    return *RowToJson(columns, cells);
  };
  EXPECT_EQ(row("12345"), R"({"zip":"12345","n":5})");
  EXPECT_EQ(row("01234"), R"({"zip":"01234","n":5})");
  EXPECT_EQ(row(""), R"({"zip":null,"n":5})");
}

}  // namespace
}  // namespace millrace::engine
