#include "framework/schedule/key_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(KeyTemplateTest, IsFilledFromTheRowAndTheFiring) {
  const auto key = KeyTemplate::Parse("bill-{customer_id}-{month}").value();
  EXPECT_THAT(key.columns(), ElementsAre("customer_id"));
  const TimeZone berlin = TimeZone::Find("Europe/Berlin").value();
  // In Berlin it is December by then.
  EXPECT_EQ(
      key.KeyOf({{"customer_id", "7"}, {"name", "x"}}, ParseTime("2026-11-30T23:30:00Z").value(), berlin)
          .value(),
      "bill-7-2026-12");
}

TEST(KeyTemplateTest, ADoubledHourIsTwo) {
  const auto key = KeyTemplate::Parse("{id}/{day}/{hour}").value();
  const TimeZone berlin = TimeZone::Find("Europe/Berlin").value();
  const std::map<std::string, std::string> row = {{"id", "1"}};
  EXPECT_EQ(key.KeyOf(row, ParseTime("2026-10-25T00:30:00Z").value(), berlin).value(),
            "1/2026-10-25/2026-10-25T02+0200");
  EXPECT_EQ(key.KeyOf(row, ParseTime("2026-10-25T01:30:00Z").value(), berlin).value(),
            "1/2026-10-25/2026-10-25T02+0100");
}

TEST(KeyTemplateTest, RefusesWhatCouldNotTellRowsApart) {
  const auto refusal = [](std::string_view text) {
    const auto key = KeyTemplate::Parse(text);
    return key ? "taken" : key.error().message;
  };
  EXPECT_THAT(refusal("{month}"), HasSubstr("names no column of the query"));
  EXPECT_THAT(refusal("bill"), HasSubstr("names no column of the query"));
  EXPECT_THAT(refusal(""), HasSubstr("names no column of the query"));
  EXPECT_THAT(refusal("{a}{b}"), HasSubstr("nothing between {a} and {b}"));
  EXPECT_THAT(refusal("{a"), HasSubstr("a brace that stands alone"));
  EXPECT_THAT(refusal("a}-{b}"), HasSubstr("a brace that stands alone"));
  EXPECT_THAT(refusal("{}-{b}"), HasSubstr("which is no column"));
  EXPECT_THAT(refusal("{a b}"), HasSubstr("give the column such a name by AS"));
  EXPECT_THAT(refusal("{" + std::string(300, 'a') + "}"), HasSubstr("longer than 256 bytes"));
}

TEST(KeyTemplateTest, RefusesARowWithoutItsColumn) {
  const auto key = KeyTemplate::Parse("{id}-{month}").value();
  EXPECT_THAT(key.KeyOf({}, WallTime(), {}).error().message, HasSubstr("lacks its column id"));
  EXPECT_THAT(key.KeyOf({{"id", ""}}, WallTime(), {}).error().message, HasSubstr("lacks its column id"));
  EXPECT_THAT(key.KeyOf({{"id", std::string(200, '7')}}, WallTime(), {}).error().message,
              HasSubstr("would be 208 bytes long, more than 190"));
}

TEST(KeyTemplateTest, TheHourIsTheSameAtEachSecondOfIt) {
  const auto key = KeyTemplate::Parse("{id}-{hour}").value();
  const WallTime hour(std::chrono::hours(17));
  EXPECT_EQ(key.KeyOf({{"id", "7"}}, hour, {}).value(),
            key.KeyOf({{"id", "7"}}, hour + std::chrono::seconds(5), {}).value());
}

}  // namespace
}  // namespace millrace::engine
