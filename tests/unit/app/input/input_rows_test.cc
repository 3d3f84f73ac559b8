#include "coordinator/app/input/input_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace millrace::engine {
namespace {

using testing::HasSubstr;

Result<std::unique_ptr<InputRows>> Csv(const std::string& text, const std::string& key_column) {
  NewTask task;
  task.handler = "noop";
  return ReadCsv(std::make_unique<std::istringstream>(text), "f.csv", task, key_column);
}

TEST(InputRowsTest, ARaggedRowIsBadAndTheOthersAreGood) {
  auto rows = Csv("id,name\n1,a\n2\n3,c,d\n4,e\n", "id");
  ASSERT_TRUE(rows);
  EXPECT_EQ((*rows)->Next()->task->biz_key, "1");
  const auto ragged = (*rows)->Next();
  EXPECT_EQ(ragged->line, 3u);
  EXPECT_THAT(ragged->task.error().message, HasSubstr("1 field where the header has 2"));
  EXPECT_FALSE((*rows)->Next()->task);
  EXPECT_EQ((*rows)->Next()->task->params, R"({"id":4,"name":"e"})");
  EXPECT_FALSE((*rows)->Next());
}

TEST(InputRowsTest, AMissingKeyColumnIsRefusedWithTheNearest) {
  EXPECT_THAT(Csv("payment_id,x\n", "paymentid").error().message, HasSubstr("did you mean 'payment_id'"));
  EXPECT_THAT(Csv("a,b\n", "zzzzzzz").error().message, HasSubstr("the columns are a, b"));
}

TEST(InputRowsTest, AnEmptyKeyIsABadRow) {
  EXPECT_THAT((*Csv("id,x\n,1\n", "id"))->Next()->task.error().message,
              HasSubstr("key column 'id' is empty"));
}

TEST(InputRowsTest, AHeaderThatNamesNothingIsRefused) {
  EXPECT_THAT(Csv("", "").error().message, HasSubstr("the file is empty"));
  EXPECT_THAT(Csv("a,a\n", "").error().message, HasSubstr("two columns are named 'a'"));
  EXPECT_THAT(Csv("a,\n", "").error().message, HasSubstr("a column has no name"));
}

}  // namespace
}  // namespace millrace::engine
