#include "framework/task/task_action.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::HasSubstr;
using testing::UnorderedElementsAre;

constexpr TaskAction kActions[] = {TaskAction::Retry, TaskAction::Cancel, TaskAction::Hold,
                                   TaskAction::Release, TaskAction::Edit};

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
  EXPECT_THAT(StatesFor(TaskAction::Edit),
              UnorderedElementsAre(TaskState::Waiting, TaskState::Held, TaskState::Failed));
}

TEST(TaskActionTest, AnEditLeavesEachStateAsItIs) {
  for (const TaskState state : StatesFor(TaskAction::Edit))
    EXPECT_EQ(StateAfter(TaskAction::Edit, state), state);
}

TEST(TaskActionTest, AnEditOfTimesLeavesAFailedTaskAloneAndSaysWhy) {
  const TaskEdit times[] = {{.run_at = WallTime()},
                            {.delay = Micros(1)},
                            {.expires_at = WallTime()},
                            {.priority = 1, .expires_in = Micros(1)}};
  for (const TaskEdit& edit : times) {
    EXPECT_THAT(StatesFor(TaskAction::Edit, edit), UnorderedElementsAre(TaskState::Waiting, TaskState::Held));
    EXPECT_FALSE(StateAfter(TaskAction::Edit, TaskState::Failed, edit));
    EXPECT_EQ(StateAfter(TaskAction::Edit, TaskState::Held, edit), TaskState::Held);
  }
  EXPECT_EQ(StateAfter(TaskAction::Edit, TaskState::Failed, {.priority = 1}), TaskState::Failed);
  EXPECT_EQ(StateAfter(TaskAction::Retry, TaskState::Failed, times[0]), TaskState::Waiting)
      << "it is no edit";
  EXPECT_THAT(Refusal(TaskAction::Edit, TaskState::Failed), HasSubstr("leave its times out"));
  EXPECT_THAT(Refusal(TaskAction::Edit, TaskState::Running), HasSubstr("can be edited"));
}

TEST(TaskActionTest, AnEditIsCheckedAsANewTaskIs) {
  EXPECT_FALSE(Validate(TaskEdit{})) << "it says nothing";
  EXPECT_FALSE(Validate(TaskEdit{.priority = 10}));
  EXPECT_FALSE(Validate(TaskEdit{.params = "[]"}));
  EXPECT_TRUE(Validate(TaskEdit{.priority = 9}));
  EXPECT_TRUE(Validate(TaskEdit{.delay = Micros(0)}));
  EXPECT_TRUE(Validate(TaskEdit{.params = "{}"}));
}

TEST(TaskActionTest, HoldAndReleaseUndoEachOther) {
  EXPECT_EQ(StateAfter(TaskAction::Hold, TaskState::Waiting), TaskState::Held);
  EXPECT_EQ(StateAfter(TaskAction::Release, TaskState::Held), TaskState::Waiting);
}

}  // namespace
}  // namespace millrace::engine
