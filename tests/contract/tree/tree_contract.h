// One suite for every tree: instantiate TreeContract with a TreeKind and link the object library.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/contract/tree/tree_fixture.h"
#include "tests/support/tree_words.h"

namespace millrace::engine {

class TreeContract : public testing::TestWithParam<TreeKind> {
 protected:
  void SetUp() override;

  // Opens a session and waits until it is connected.
  std::unique_ptr<TreeSession> Connect();
  // The next event of a kind, others dropped; nullopt if none comes in time.
  std::optional<TreeEvent> Await(TreeSession& session, TreeEvent::Kind kind);
  // Lost is answered until a new connection was heard of: asks again until then.
  TreeReply Persist(TreeSession& session, const TreeRequest& request);

  // A write of the other client, which succeeds.
  void Do(std::vector<TreeWrite> writes);

  std::unique_ptr<TreeFixture> fixture_;
  std::unique_ptr<TreeSession> session_;  // both connected
  std::unique_ptr<TreeSession> other_;
};

}  // namespace millrace::engine
