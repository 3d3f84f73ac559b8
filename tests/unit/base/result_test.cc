#include "framework/base/result.h"

#include <gmock/gmock.h>

#include <memory>

namespace millrace::engine {
namespace {

Result<std::unique_ptr<int>> Half(int number) {
  if (number % 2 != 0) return Fail(ErrorCode::Invalid, std::to_string(number) + " is odd");
  return std::make_unique<int>(number / 2);
}

Status Even(int number) {
  BOOST_OUTCOME_TRYV(Half(number));
  return {};
}

Result<int> Quarter(int number) {
  BOOST_OUTCOME_TRY(half, Half(number));
  BOOST_OUTCOME_TRYV(Even(*half));
  return *half / 2;
}

TEST(ResultTest, TryDeclaresTheValueOrForwardsTheError) {
  EXPECT_EQ(Quarter(12).value(), 3);
  EXPECT_EQ(Quarter(5).error().message, "5 is odd");
  EXPECT_EQ(Quarter(10).error().message, "5 is odd");
  EXPECT_EQ(Even(7).error().code, ErrorCode::Invalid);
  EXPECT_TRUE(Even(8));
}

TEST(ResultTest, MadeOfNothingItIsAnEmptyValue) {
  EXPECT_TRUE(Status().has_value());
  EXPECT_EQ(Result<std::string>().value(), "");
}

TEST(ResultTest, ValueOrTakesTheOtherInPlaceOfAnError) {
  EXPECT_EQ(Quarter(12).value_or(0), 3);
  EXPECT_EQ(Quarter(5).value_or(0), 0);
  const Result<std::string> failed = Fail(ErrorCode::NotFound, "");
  EXPECT_EQ(failed.value_or("none"), "none");
}

TEST(ResultDeathTest, TheHalfThatIsNotThereEndsTheProcess) {
  EXPECT_DEATH(static_cast<void>(Quarter(5).value()), "which is an error: invalid: 5 is odd");
  EXPECT_DEATH(static_cast<void>(Quarter(12).error()), "which is a value");
}

}  // namespace
}  // namespace millrace::engine
