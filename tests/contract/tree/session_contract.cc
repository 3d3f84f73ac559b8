// What becomes of a session when the network, or the client itself, stands still.
#include <gmock/gmock.h>

#include <chrono>

#include "tests/contract/tree/tree_contract.h"

namespace millrace::engine {
namespace {

using Kind = TreeEvent::Kind;

TEST_P(TreeContract, NothingIsAskedBeforeTheConnectionIsTold) {
  auto late = fixture_->Open();
  EXPECT_EQ(late->Perform(Get("/")).status, TreeStatus::Lost);
  ASSERT_TRUE(Await(*late, Kind::Connected));
  EXPECT_EQ(late->Perform(Get("/")).status, TreeStatus::Ok);
}

TEST_P(TreeContract, EverySessionHasANumberOfItsOwn) {
  auto first = fixture_->Open();
  auto second = fixture_->Open();
  const auto a = Await(*first, Kind::Connected);
  const auto b = Await(*second, Kind::Connected);
  ASSERT_TRUE(a && b);
  EXPECT_NE(a->session, b->session);
}

TEST_P(TreeContract, AnInterruptEndsTheNextWait) {
  session_->Interrupt();
  EXPECT_FALSE(session_->WaitEvent(std::chrono::hours(1)));
  EXPECT_FALSE(session_->WaitEvent(Micros(0)));
}

TEST_P(TreeContract, AWaitAsLongAsThereIsCanBeAskedFor) {
  session_->Interrupt();
  EXPECT_FALSE(session_->WaitEvent(Micros::max()));
}

TEST_P(TreeContract, TheLastContactIsWhenTheLastWriteWasSent) {
  const BootTime before = session_->LastContact();
  ASSERT_EQ(session_->Perform(Write({Create("/a")})).status, TreeStatus::Ok);
  const BootTime after = session_->LastContact();
  EXPECT_GT(after, before);
  EXPECT_EQ(session_->Perform(Write({Create("/a")})).status, TreeStatus::Exists);
  EXPECT_GT(session_->LastContact(), after) << "a refusal is an answer, too";
}

TEST_P(TreeContract, TheLastContactStaysYoungWhileTheOwnerWaits) {
  const BootTime before = session_->LastContact();
  const Micros timeout = session_->Timeout();
  EXPECT_FALSE(session_->WaitEvent(timeout));
  EXPECT_GT(session_->LastContact() - before, timeout / 2);
}

TEST_P(TreeContract, TheLastContactStaysYoungWhileTheOwnerReads) {
  const BootTime before = session_->LastContact();
  const Micros timeout = session_->Timeout();
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(session_->Perform(Get("/")).status, TreeStatus::Ok);
    EXPECT_FALSE(session_->WaitEvent(timeout / 8));
  }
  EXPECT_GT(session_->LastContact() - before, timeout / 2);
}

TEST_P(TreeContract, TheLastContactStandsStillWhileNoServerIsReached) {
  fixture_->Cut(*session_);
  ASSERT_TRUE(Await(*session_, Kind::Disconnected));
  const BootTime before = session_->LastContact();
  EXPECT_EQ(session_->Perform(Get("/")).status, TreeStatus::Lost);
  EXPECT_FALSE(AwaitEvent(*session_, Kind::Connected, session_->Timeout() / 4));
  EXPECT_EQ(session_->LastContact(), before);
}

TEST_P(TreeContract, AShortCutLeavesTheSessionAndItsNodes) {
  ASSERT_EQ(session_->Perform(Write({CreateEphemeral("/e")})).status, TreeStatus::Ok);
  const TreeNode before = session_->Perform(Get("/e")).node;
  fixture_->Cut(*session_);
  ASSERT_TRUE(Await(*session_, Kind::Disconnected));
  EXPECT_EQ(session_->Perform(Get("/e")).status, TreeStatus::Lost);
  EXPECT_EQ(session_->Perform(Write({Set("/e", "x")})).status, TreeStatus::Lost);
  fixture_->Mend(*session_);
  const auto connected = Await(*session_, Kind::Connected);
  ASSERT_TRUE(connected);
  EXPECT_EQ(connected->session, before.owner);
  EXPECT_EQ(session_->Perform(Get("/e")).node, before) << "nothing was written while it was cut off";
}

TEST_P(TreeContract, AfterAReconnectionWhatOthersWroteMeanwhileIsRead) {
  Do({Create("/a", "before")});
  fixture_->Cut(*session_);
  ASSERT_TRUE(Await(*session_, Kind::Disconnected));
  Do({Set("/a", "meanwhile")});
  fixture_->Mend(*session_);
  ASSERT_TRUE(Await(*session_, Kind::Connected));
  EXPECT_EQ(session_->Perform(Get("/a")).node.data, "meanwhile");
}

TEST_P(TreeContract, ALongCutEndsTheSessionAndItsNodesAndANewOneFollows) {
  ASSERT_EQ(session_->Perform(Write({Create("/p"), CreateEphemeral("/e")})).status, TreeStatus::Ok);
  const std::int64_t old = session_->Perform(Get("/e")).node.owner;
  fixture_->Cut(*session_);
  ASSERT_TRUE(Await(*session_, Kind::Disconnected));
  fixture_->AwaitExpiry(*session_);
  EXPECT_EQ(other_->Perform(Get("/e")).status, TreeStatus::NotFound);
  fixture_->Mend(*session_);
  ASSERT_TRUE(Await(*session_, Kind::Expired));
  const auto connected = Await(*session_, Kind::Connected);
  ASSERT_TRUE(connected);
  EXPECT_NE(connected->session, old);
  EXPECT_EQ(session_->Perform(Get("/p")).status, TreeStatus::Ok);
  ASSERT_EQ(session_->Perform(Write({CreateEphemeral("/e")})).status, TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(Get("/e")).node.owner, connected->session);
}

TEST_P(TreeContract, ASessionIsHeldToBeOverWhenItsTimeHasPassedSinceTheLastContact) {
  ASSERT_EQ(session_->Perform(Write({CreateEphemeral("/e")})).status, TreeStatus::Ok);
  ASSERT_EQ(other_->Perform(Get("/e", true)).status, TreeStatus::Ok);
  fixture_->Cut(*session_);
  ASSERT_TRUE(AwaitEvent(*other_, Kind::Changed, std::chrono::seconds(10)));
  EXPECT_GE(fixture_->Now() - session_->LastContact(), session_->Timeout());
}

TEST_P(TreeContract, AWriteWhoseReplyIsLostMayHaveHappened) {
  fixture_->LoseReply(*session_, "/lost");
  EXPECT_EQ(session_->Perform(Write({Create("/lost", "here")})).status, TreeStatus::Lost);
  const TreeReply found = Persist(*session_, Get("/lost"));
  EXPECT_EQ(found.status, TreeStatus::Ok);
  EXPECT_EQ(found.node.data, "here");
}

}  // namespace
}  // namespace millrace::engine
