#include "tests/contract/tree/tree_contract.h"

#include <chrono>
#include <utility>

namespace millrace::engine {
namespace {

constexpr Micros kLimit = std::chrono::seconds(10);

}  // namespace

void TreeContract::SetUp() {
  fixture_ = GetParam().make();
  ASSERT_NE(fixture_, nullptr);
  session_ = Connect();
  other_ = Connect();
}

void TreeContract::Do(std::vector<TreeWrite> writes) {
  const TreeReply reply = other_->Perform(Write(std::move(writes)));
  ASSERT_EQ(reply.status, TreeStatus::Ok) << reply.message;
}

std::unique_ptr<TreeSession> TreeContract::Connect() {
  auto session = fixture_->Open();
  EXPECT_TRUE(Await(*session, TreeEvent::Kind::Connected)) << "no connection";
  return session;
}

std::optional<TreeEvent> TreeContract::Await(TreeSession& session, TreeEvent::Kind kind) {
  return AwaitEvent(session, kind, kLimit);
}

TreeReply TreeContract::Persist(TreeSession& session, const TreeRequest& request) {
  TreeReply reply = session.Perform(request);
  for (int tries = 0; tries < 100 && reply.status == TreeStatus::Lost; ++tries) {
    (void)session.WaitEvent(kLimit / 100);
    reply = session.Perform(request);
  }
  return reply;
}

// A tree that leaves the suite out says so by not instantiating it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TreeContract);

}  // namespace millrace::engine
