#include "framework/task/task_action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::UnorderedElementsAre;

constexpr TaskAction kActions[] = {TaskAction::Retry, TaskAction::Cancel, TaskAction::Hold,
                                   TaskAction::Release};

TEST(TaskActionTest, WhatEndedWellIsNeverChanged) {
  for (const TaskAction action : kActions) {
    EXPECT_FALSE(StateAfter(action, TaskState::Succeeded)) << ToString(action);
    EXPECT_FALSE(StateAfter(action, TaskState::Cancelled)) << ToString(action);
  }
}

TEST(TaskActionTest, ARunningRowKeepsItsState) {
  for (const TaskAction action : kActions)
    EXPECT_EQ(StateAfter(action, TaskState::Running).value_or(TaskState::Running), TaskState::Running);
  EXPECT_TRUE(StateAfter(TaskAction::Cancel, TaskState::Running)) << "it is asked to stop";
}

TEST(TaskActionTest, EachActionFitsItsStates) {
  EXPECT_THAT(StatesFor(TaskAction::Retry), UnorderedElementsAre(TaskState::Failed, TaskState::Waiting));
  EXPECT_THAT(StatesFor(TaskAction::Cancel), UnorderedElementsAre(TaskState::Waiting, TaskState::Held,
                                                                  TaskState::Running, TaskState::Failed));
  EXPECT_THAT(StatesFor(TaskAction::Hold), UnorderedElementsAre(TaskState::Waiting));
  EXPECT_THAT(StatesFor(TaskAction::Release), UnorderedElementsAre(TaskState::Held));
}

TEST(TaskActionTest, HoldAndReleaseUndoEachOther) {
  EXPECT_EQ(StateAfter(TaskAction::Hold, TaskState::Waiting), TaskState::Held);
  EXPECT_EQ(StateAfter(TaskAction::Release, TaskState::Held), TaskState::Waiting);
}

}  // namespace
}  // namespace millrace::engine
