// The contract of the tree on a private ZooKeeper, each client behind a proxy of its own.
#include <chrono>
#include <map>
#include <thread>

#include "coordinator/coordination/zookeeper/zookeeper.h"
#include "framework/base/random.h"
#include "tests/contract/tree/tree_contract.h"
#include "tests/support/private_zookeeper.h"
#include "tests/support/tcp_proxy.h"

namespace millrace::engine {
namespace {

constexpr Micros kTimeout = std::chrono::seconds(1);

PrivateZookeeper& SharedEnsemble() {
  static PrivateZookeeper ensemble;
  return ensemble;
}

class ZookeeperTree final : public TreeFixture {
 public:
  ZookeeperTree() {
    const Status prepared = PrepareZookeeper(Options(SharedEnsemble().port()), std::chrono::seconds(10));
    EXPECT_TRUE(prepared) << prepared.error().message;
  }

  std::unique_ptr<TreeSession> Open() override {
    auto proxy = std::make_unique<TcpProxy>(SharedEnsemble().port(), TcpProxy::Protocol::Zookeeper);
    auto session = OpenZookeeper(Options(proxy->port()));
    EXPECT_TRUE(session) << session.error().message;
    proxies_[session->get()] = std::move(proxy);
    return std::move(*session);
  }

  void Cut(TreeSession& session) override { proxies_.at(&session)->Close(); }
  void Mend(TreeSession& session) override { proxies_.at(&session)->Reopen(); }
  void AwaitExpiry(TreeSession& session) override {
    // The servers look for ended sessions at every tick.
    std::this_thread::sleep_for(session.Timeout() + 3 * std::chrono::milliseconds(200));
  }
  void LoseReply(TreeSession& session, const std::string& text) override {
    proxies_.at(&session)->Arm(TcpProxy::Evil::LoseReply, text);
  }

 private:
  ZookeeperOptions Options(std::uint16_t port) const {
    return {.servers = "127.0.0.1:" + std::to_string(port), .cluster = cluster_, .session_timeout = kTimeout};
  }

  const std::string cluster_ = "t" + Random::FromSystem().Hex(12);
  std::map<const TreeSession*, std::unique_ptr<TcpProxy>> proxies_;
};

INSTANTIATE_TEST_SUITE_P(Zookeeper, TreeContract,
                         testing::Values(TreeKind{"zookeeper",
                                                  [] { return std::make_unique<ZookeeperTree>(); }}));

}  // namespace
}  // namespace millrace::engine
