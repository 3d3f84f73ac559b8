// What a watch tells, and what it does not.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/contract/tree/tree_contract.h"

namespace millrace::engine {
namespace {

// Long enough for an event to come, where none should.
constexpr Micros kBrief = std::chrono::milliseconds(100);

void ExpectChange(TreeSession& session, const std::string& path) {
  const auto event = AwaitEvent(session, TreeEvent::Kind::Changed, std::chrono::seconds(10));
  ASSERT_TRUE(event) << "no change of " << path << " was told";
  EXPECT_EQ(event->path, path);
}
void ExpectQuiet(TreeSession& session) {
  EXPECT_FALSE(AwaitEvent(session, TreeEvent::Kind::Changed, kBrief));
}

TEST_P(TreeContract, AWatchTellsOneChangeOfTheDataAndNoMore) {
  Do({Create("/a"), Create("/a/b")});
  ASSERT_EQ(session_->Perform(Get("/a", true)).status, TreeStatus::Ok);
  Do({Create("/a/c")});
  ExpectQuiet(*session_);
  Do({Set("/a", "1")});
  ExpectChange(*session_, "/a");
  Do({Set("/a", "2")});
  ExpectQuiet(*session_);
}

TEST_P(TreeContract, AWatchTellsTheEndOfANode) {
  Do({Create("/a"), Create("/a/b")});
  ASSERT_EQ(session_->Perform(Get("/a/b", true)).status, TreeStatus::Ok);
  Do({Remove("/a/b")});
  ExpectChange(*session_, "/a/b");
}

TEST_P(TreeContract, AWatchTellsTheMakingOfAMissingNode) {
  Do({Create("/a"), Create("/a/b")});
  ASSERT_EQ(session_->Perform(Get("/a/later", true)).status, TreeStatus::NotFound);
  Do({Create("/a/later")});
  ExpectChange(*session_, "/a/later");
  EXPECT_EQ(session_->Perform(Get("/a/later")).status, TreeStatus::Ok);
}

TEST_P(TreeContract, AWatchOfAListTellsOneChangeOfTheChildrenButNotOfTheirData) {
  Do({Create("/a"), Create("/a/b")});
  ASSERT_EQ(session_->Perform(List("/a", true)).status, TreeStatus::Ok);
  Do({Set("/a", "1")});
  Do({Set("/a/b", "1")});
  Do({Create("/a/b/below")});
  ExpectQuiet(*session_);
  Do({Create("/a/c")});
  ExpectChange(*session_, "/a");
  Do({Create("/a/d")});
  ExpectQuiet(*session_);
}

TEST_P(TreeContract, AWatchOfAListTellsTheMakingOfAMissingNode) {
  Do({Create("/a"), Create("/a/b")});
  ASSERT_EQ(session_->Perform(List("/later", true)).status, TreeStatus::NotFound);
  Do({Create("/later")});
  ExpectChange(*session_, "/later");
  Do({Create("/later/a")});
  ExpectQuiet(*session_);
}

TEST_P(TreeContract, AReadThatDoesNotAskForAWatchLeavesNone) {
  Do({Create("/a"), Create("/a/b")});
  ASSERT_EQ(session_->Perform(Get("/a")).status, TreeStatus::Ok);
  ASSERT_EQ(session_->Perform(List("/a")).status, TreeStatus::Ok);
  ASSERT_EQ(session_->Perform(Get("/none")).status, TreeStatus::NotFound);
  Do({Set("/a", "1")});
  Do({Create("/a/c")});
  Do({Create("/none")});
  ExpectQuiet(*session_);
}

TEST_P(TreeContract, TheRootIsWatchedByItsOwnName) {
  Do({Create("/a"), Create("/a/b")});
  ASSERT_EQ(session_->Perform(List("/", true)).status, TreeStatus::Ok);
  Do({Create("/new")});
  ExpectChange(*session_, "/");
}

}  // namespace
}  // namespace millrace::engine
