// What a tree answers while the network holds.
#include <gmock/gmock.h>

#include "tests/contract/tree/tree_contract.h"

namespace millrace::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_P(TreeContract, ANewNodeIsReadAsItWasWritten) {
  ASSERT_EQ(session_->Perform(Write({Create("/a", R"({"x":1})")})).status, TreeStatus::Ok);
  const TreeReply reply = session_->Perform(Get("/a"));
  ASSERT_EQ(reply.status, TreeStatus::Ok) << reply.message;
  EXPECT_EQ(reply.node.data, R"({"x":1})");
  EXPECT_EQ(reply.node.version, 0);
  EXPECT_EQ(reply.node.owner, 0);
  EXPECT_GT(reply.node.created, 0);
  EXPECT_THAT(reply.message, IsEmpty());
}

TEST_P(TreeContract, DataMayBeEmptyOrHoldAnyByte) {
  const std::string bytes("a\0\xff\n", 4);
  ASSERT_EQ(session_->Perform(Write({Create("/empty"), Create("/bytes", bytes)})).status, TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(Get("/empty")).node.data, "");
  EXPECT_EQ(session_->Perform(Get("/bytes")).node.data, bytes);
}

TEST_P(TreeContract, EachSetRaisesTheVersionAndKeepsTheOrderOfMaking) {
  ASSERT_EQ(session_->Perform(Write({Create("/a"), Create("/b")})).status, TreeStatus::Ok);
  ASSERT_EQ(session_->Perform(Write({Create("/c")})).status, TreeStatus::Ok);
  const TreeNode before = session_->Perform(Get("/a")).node;
  ASSERT_EQ(session_->Perform(Write({Set("/a", "1", 0)})).status, TreeStatus::Ok);
  ASSERT_EQ(session_->Perform(Write({Set("/a", "2")})).status, TreeStatus::Ok);
  const TreeNode after = session_->Perform(Get("/a")).node;
  EXPECT_EQ(after.version, 2);
  EXPECT_EQ(after.data, "2");
  EXPECT_EQ(after.created, before.created);
  EXPECT_GT(session_->Perform(Get("/c")).node.created, before.created);
}

TEST_P(TreeContract, AVersionBeginsAnewWithANewNode) {
  ASSERT_EQ(session_->Perform(Write({Create("/a"), Set("/a", "1")})).status, TreeStatus::Ok);
  ASSERT_EQ(session_->Perform(Write({Remove("/a"), Create("/a", "2")})).status, TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(Get("/a")).node.version, 0);
}

TEST_P(TreeContract, ListGivesTheNamesOfTheChildrenSorted) {
  ASSERT_EQ(session_->Perform(Write({Create("/a"), Create("/a/z"), Create("/a/b"), Create("/a/b/x")})).status,
            TreeStatus::Ok);
  EXPECT_THAT(session_->Perform(List("/a")).children, ElementsAre("b", "z"));
  EXPECT_THAT(session_->Perform(List("/a/z")).children, IsEmpty());
}

TEST_P(TreeContract, ANodeTellsHowManyChildrenItHas) {
  ASSERT_EQ(session_->Perform(Write({Create("/a"), Create("/a/b"), Create("/a/b/x")})).status,
            TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(Get("/a")).node.children, 1);
  EXPECT_EQ(session_->Perform(Get("/a/b/x")).node.children, 0);
}

TEST_P(TreeContract, ManyAreCarriedOutAndAnsweredInTheirOrder) {
  std::vector<TreeRequest> requests;
  for (int i = 0; i < 150; ++i) {
    const std::string path = "/n" + std::to_string(i);
    requests.push_back(Write({Create(path, path)}));
    requests.push_back(Get(path));
    requests.push_back(Get(path + "/none"));
  }
  requests.push_back(Get("relative"));
  requests.push_back(List("/"));
  const std::vector<TreeReply> replies = session_->PerformAll(requests);
  ASSERT_EQ(replies.size(), requests.size());
  for (std::size_t i = 0; i < 150; ++i) {
    EXPECT_EQ(replies[3 * i].status, TreeStatus::Ok);
    EXPECT_EQ(replies[3 * i + 1].node.data, requests[3 * i + 1].path);
    EXPECT_EQ(replies[3 * i + 2].status, TreeStatus::NotFound);
  }
  EXPECT_EQ(replies[450].status, TreeStatus::Invalid);
  EXPECT_GE(replies[451].children.size(), 150u);
}

TEST_P(TreeContract, TheRootIsANodeLikeAnyOther) {
  ASSERT_EQ(session_->Perform(Write({Set("/", "root"), Create("/a")})).status, TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(Get("/")).node.data, "root");
  EXPECT_THAT(session_->Perform(List("/")).children, testing::Contains("a"));
}

TEST_P(TreeContract, WhatIsMissingIsNotFound) {
  EXPECT_EQ(session_->Perform(Get("/none")).status, TreeStatus::NotFound);
  EXPECT_EQ(session_->Perform(List("/none")).status, TreeStatus::NotFound);
  for (const TreeWrite& write : {Set("/none", ""), Remove("/none"), Check("/none"), Create("/none/a")}) {
    const TreeReply reply = session_->Perform(Write({write}));
    EXPECT_EQ(reply.status, TreeStatus::NotFound);
    EXPECT_THAT(reply.message, HasSubstr("/none"));
  }
}

TEST_P(TreeContract, WhatIsThereIsNotMadeAgain) {
  ASSERT_EQ(session_->Perform(Write({Create("/a")})).status, TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(Write({Create("/a")})).status, TreeStatus::Exists);
  EXPECT_EQ(session_->Perform(Write({CreateEphemeral("/a")})).status, TreeStatus::Exists);
}

TEST_P(TreeContract, AnotherVersionIsAConflict) {
  ASSERT_EQ(session_->Perform(Write({Create("/a"), Set("/a", "1")})).status, TreeStatus::Ok);
  for (const TreeWrite& write : {Set("/a", "2", 0), Remove("/a", 2), Check("/a", 0)}) {
    EXPECT_EQ(session_->Perform(Write({write})).status, TreeStatus::Conflict);
  }
  EXPECT_EQ(session_->Perform(Write({Check("/a", 1), Set("/a", "2", 1)})).status, TreeStatus::Ok);
}

TEST_P(TreeContract, ANodeWithChildrenIsNotRemoved) {
  ASSERT_EQ(session_->Perform(Write({Create("/a"), Create("/a/b")})).status, TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(Write({Remove("/a")})).status, TreeStatus::Conflict);
  EXPECT_EQ(session_->Perform(Write({Remove("/a/b"), Remove("/a")})).status, TreeStatus::Ok);
}

TEST_P(TreeContract, AWriteIsCarriedOutWholeOrNotAtAllAndNamesWhatFailed) {
  ASSERT_EQ(session_->Perform(Write({Create("/a", "0")})).status, TreeStatus::Ok);
  const TreeReply reply =
      session_->Perform(Write({Check("/a", 0), Set("/a", "1"), Create("/b"), Remove("/none"), Create("/c")}));
  EXPECT_EQ(reply.status, TreeStatus::NotFound);
  EXPECT_EQ(reply.failed, 3u);
  EXPECT_THAT(reply.message, HasSubstr("remove /none"));
  EXPECT_EQ(session_->Perform(Get("/a")).node.data, "0");
  EXPECT_EQ(session_->Perform(Get("/b")).status, TreeStatus::NotFound);
}

TEST_P(TreeContract, LaterWritesOfARequestSeeTheEarlierOnes) {
  EXPECT_EQ(session_
                ->Perform(Write({Create("/a", "0"), Check("/a", 0), Set("/a", "1", 0), Check("/a", 1),
                                 Create("/a/b"), Remove("/a/b"), Remove("/a", 1), Create("/a", "2")}))
                .status,
            TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(Get("/a")).node.data, "2");
}

TEST_P(TreeContract, AnEphemeralNodeNamesItsSessionAndHasNoChildren) {
  auto other = fixture_->Open();
  const auto connected = Await(*other, TreeEvent::Kind::Connected);
  ASSERT_TRUE(connected);
  ASSERT_EQ(other->Perform(Write({CreateEphemeral("/e", "x")})).status, TreeStatus::Ok);
  const TreeReply reply = session_->Perform(Get("/e"));
  EXPECT_EQ(reply.node.owner, connected->session);
  EXPECT_NE(connected->session, 0);
  EXPECT_EQ(session_->Perform(Write({Create("/e/child")})).status, TreeStatus::Invalid);
}

TEST_P(TreeContract, ACloseEndsTheEphemeralNodesAtOnceAndLeavesTheOthers) {
  auto other = Connect();
  ASSERT_EQ(other->Perform(Write({Create("/p"), CreateEphemeral("/p/e")})).status, TreeStatus::Ok);
  ASSERT_THAT(session_->Perform(List("/p", true)).children, ElementsAre("e"));
  other.reset();
  const auto changed = AwaitEvent(*session_, TreeEvent::Kind::Changed, session_->Timeout() / 2);
  ASSERT_TRUE(changed);
  EXPECT_EQ(changed->path, "/p");
  EXPECT_THAT(session_->Perform(List("/p")).children, IsEmpty());
}

TEST_P(TreeContract, WhatIsTooLargeOrNoPathIsInvalidAndTheSessionGoesOn) {
  EXPECT_EQ(session_->Perform(Get("relative")).status, TreeStatus::Invalid);
  EXPECT_EQ(session_->Perform(Get("/double//slash")).status, TreeStatus::Invalid);
  EXPECT_EQ(session_->Perform(Write({})).status, TreeStatus::Invalid);
  EXPECT_EQ(session_->Perform(Write({Create("/end/")})).status, TreeStatus::Invalid);
  EXPECT_EQ(session_->Perform(Write({Create("/a", std::string(256 * 1024 + 1, 'x'))})).status,
            TreeStatus::Invalid);
  EXPECT_EQ(session_->Perform(Write(std::vector<TreeWrite>(201, Check("/")))).status, TreeStatus::Invalid);
  EXPECT_EQ(session_->Perform(Get("/")).status, TreeStatus::Ok);
}

TEST_P(TreeContract, TheLargestWritesAreTaken) {
  const std::string large(256 * 1024, 'x');
  ASSERT_EQ(session_->Perform(Write({Create("/large", large)})).status, TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(Get("/large")).node.data, large);
  TreeRequest larger = Write({Create("/larger", std::string(960 * 1024, 'x'))});
  larger.most_bytes = kMostBytesAtOnce;
  ASSERT_EQ(session_->Perform(larger).status, TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(Get("/larger")).node.data.size(), 960u * 1024);
  std::vector<TreeWrite> many{Create("/many")};
  for (int i = 1; i < 200; ++i) many.push_back(Create("/many/" + std::to_string(1000 + i)));
  ASSERT_EQ(session_->Perform(Write(many)).status, TreeStatus::Ok);
  EXPECT_EQ(session_->Perform(List("/many")).children.size(), 199u);
}

}  // namespace
}  // namespace millrace::engine
