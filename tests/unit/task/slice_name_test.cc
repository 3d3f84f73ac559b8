#include "framework/task/slice_name.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

TEST(SliceNameTest, ReadsWhatItWrites) {
  for (const char* text : {"main/tasks/0", "main/tasks_007/16383", "eu-1/tasks/17@award_points"}) {
    const auto name = ParseSliceName(text);
    ASSERT_TRUE(name) << text;
    EXPECT_EQ(ToString(*name), text);
  }
}

TEST(SliceNameTest, TheDefaultGroupIsNotWritten) {
  EXPECT_EQ(ToString(SliceName{"main", "tasks", 17, kDefaultGroup}), "main/tasks/17");
  EXPECT_EQ(ToString(SliceName{"main", "tasks", 17, "mail"}), "main/tasks/17@mail");
}

TEST(SliceNameTest, RefusesWhatItWouldNotWrite) {
  for (const char* text :
       {"", "17", "tasks/17", "main/tasks/", "main/tasks/x", "main/tasks/-1", "main/tasks/+1",
        "main/tasks/017", "/tasks/1", "main//1", "main/tasks/1@", "main/tasks/1@default", "main/tasks/1/2",
        "main/tasks/16384", "main/tasks/4294967296", "main/tasks/@mail"}) {
    EXPECT_FALSE(ParseSliceName(text)) << text;
  }
}

TEST(SliceNameTest, WhatNamesNoTaskTableIsRefusedWithTheRule) {
  for (const char* text : {"main/tasks; DROP TABLE tasks/1", "main/Tasks/1", "main/tasks_done;/1@mail"}) {
    const auto name = ParseSliceName(text);
    ASSERT_FALSE(name) << text;
    EXPECT_EQ(name.error().code, ErrorCode::Invalid);
    EXPECT_NE(name.error().message.find("names no task table"), std::string::npos) << name.error().message;
  }
}

}  // namespace
}  // namespace millrace::engine
