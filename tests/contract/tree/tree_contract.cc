#include "tests/contract/tree/tree_contract.h"

#include <chrono>
#include <utility>

namespace millrace {
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

std::optional<TreeEvent> AwaitEvent(TreeSession& session, TreeEvent::Kind kind, Micros limit) {
  // Each wait has its own limit: the number of events before is small.
  for (int others = 0; others < 20; ++others) {
    auto event = session.WaitEvent(limit);
    if (!event || event->kind == kind) return event;
  }
  return std::nullopt;
}

TreeRequest Get(const std::string& path, bool watch) {
  return {.kind = TreeRequest::Kind::Get, .path = path, .watch = watch};
}
TreeRequest List(const std::string& path, bool watch) {
  return {.kind = TreeRequest::Kind::List, .path = path, .watch = watch};
}
TreeRequest Write(std::vector<TreeWrite> writes) {
  return {.kind = TreeRequest::Kind::Write, .writes = std::move(writes)};
}
TreeWrite Create(const std::string& path, const std::string& data) {
  return {.kind = TreeWrite::Kind::Create, .path = path, .data = data};
}
TreeWrite CreateEphemeral(const std::string& path, const std::string& data) {
  return {.kind = TreeWrite::Kind::CreateEphemeral, .path = path, .data = data};
}
TreeWrite Set(const std::string& path, const std::string& data, std::int32_t version) {
  return {.kind = TreeWrite::Kind::Set, .path = path, .data = data, .version = version};
}
TreeWrite Remove(const std::string& path, std::int32_t version) {
  return {.kind = TreeWrite::Kind::Remove, .path = path, .version = version};
}
TreeWrite Check(const std::string& path, std::int32_t version) {
  return {.kind = TreeWrite::Kind::Check, .path = path, .version = version};
}

// A tree that leaves the suite out says so by not instantiating it.
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(TreeContract);

}  // namespace millrace
