// Clients of a private ensemble, and what a test types to them. Header only.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "coordinator/coordination/driver.h"
#include "coordinator/coordination/zookeeper/zookeeper.h"
#include "framework/base/random.h"
#include "tests/support/private_zookeeper.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/tree_words.h"

namespace millrace::engine {

constexpr Micros kSoon = std::chrono::seconds(10);

// A cluster of its own on an ensemble that outlives it.
class ZookeeperTest : public testing::Test {
 protected:
  ZookeeperOptions Options(const std::string& servers) const {
    return {.servers = servers, .cluster = cluster_, .session_timeout = timeout_};
  }
  static std::unique_ptr<TreeSession> Open(const ZookeeperOptions& options) {
    auto session = OpenZookeeper(options);
    EXPECT_TRUE(session) << session.error().message;
    return session ? std::move(*session) : nullptr;
  }
  // Connected, in a cluster that is prepared.
  static std::unique_ptr<TreeSession> Connect(const ZookeeperOptions& options) {
    const Status prepared = PrepareZookeeper(options, kSoon);
    EXPECT_TRUE(prepared) << prepared.error().message;
    auto session = Open(options);
    EXPECT_TRUE(AwaitEvent(*session, TreeEvent::Kind::Connected, kSoon));
    return session;
  }
  // Asks again until there is an answer.
  static TreeReply Persist(TreeSession& session, const TreeRequest& request) {
    const BootTime end = BootClock::now() + kSoon;
    TreeReply reply = session.Perform(request);
    while (BootClock::now() < end &&
           (reply.status == TreeStatus::Lost || reply.status == TreeStatus::Expired)) {
      (void)session.WaitEvent(std::chrono::milliseconds(20));
      reply = session.Perform(request);
    }
    return reply;
  }

  const std::string cluster_ = "t" + Random::FromSystem().Hex(12);
  Micros timeout_ = std::chrono::seconds(2);
};

// A server of the test's own, which a driver reaches through a proxy that can be cut.
class CutZookeeperTest : public ZookeeperTest {
 protected:
  Driver Drive(TreeMachine& machine) {
    return Driver(Open(Options("127.0.0.1:" + std::to_string(proxy_.port()))), {&machine}, clock_);
  }
  // Past the proxy.
  std::unique_ptr<TreeSession> Eyes() const { return Connect(Options(ensemble_.servers())); }

  PrivateZookeeper ensemble_;
  TcpProxy proxy_{ensemble_.port(), TcpProxy::Protocol::Zookeeper};
  const SystemClock clock_{};
};

}  // namespace millrace::engine
