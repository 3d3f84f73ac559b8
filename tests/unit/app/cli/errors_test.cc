#include "coordinator/app/cli/errors.h"

#include <gmock/gmock.h>

#include <stdexcept>

namespace millrace::engine {
namespace {

std::string SaidBy(const std::function<int()>& command, int exit_code) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ReportExceptions(command), exit_code);
  return ::testing::internal::GetCapturedStderr();
}

TEST(ReportExceptionsTest, ACommandsExitStatusIsItsOwn) {
  EXPECT_EQ(SaidBy([] { return 4; }, 4), "");
}

TEST(ReportExceptionsTest, WhatACommandThrowsIsSaidAndEndsItWithOne) {
  EXPECT_THAT(SaidBy([]() -> int { throw std::out_of_range("lost"); }, 1), ::testing::HasSubstr("lost"));
  EXPECT_THAT(SaidBy([]() -> int { throw 7; }, 1), ::testing::HasSubstr("unknown exception"));
  EXPECT_THAT(SaidBy([]() -> int { throw std::bad_alloc(); }, 1), ::testing::HasSubstr("out of memory"));
}

}  // namespace
}  // namespace millrace::engine
