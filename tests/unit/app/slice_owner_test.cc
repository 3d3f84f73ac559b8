#include "coordinator/app/slice_owner.h"

#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

TEST(SliceOwnerTest, TheAssignmentThatNamesTheSliceSaysIt) {
  ClusterTree tree;
  tree.assigned["w1"] = {1, 1, {"main/tasks/0", "main/tasks/1"}, {}};
  tree.assigned["w2"] = {1, 1, {"main/tasks/2"}, {}};
  EXPECT_EQ(SliceOf(tree, "main", "tasks", 2, "noop"), "main/tasks/2");
  EXPECT_EQ(OwnerOf(tree, "main/tasks/2"), "w2");
  EXPECT_EQ(OwnerOf(tree, "main/tasks/3"), "");
}

TEST(SliceOwnerTest, WhereThereAreGroupsTheTasksTypeDecides) {
  ClusterTree tree;
  tree.assigned["w1"] = {1, 1, {"main/tasks/0@mail"}, {{"mail", {"send_mail"}}}};
  tree.assigned["w2"] = {1, 1, {"main/tasks/0"}, {{"default", {"*"}}}};
  EXPECT_EQ(SliceOf(tree, "main", "tasks", 0, "send_mail"), "main/tasks/0@mail");
  EXPECT_EQ(SliceOf(tree, "main", "tasks", 0, "noop"), "main/tasks/0");
}

}  // namespace
}  // namespace millrace::engine
