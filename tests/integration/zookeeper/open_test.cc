// What stands between a start and a cluster: addresses, the chroot, digests.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>

#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/coordination/zookeeper/zookeeper_session.h"
#include "tests/integration/zookeeper/zookeeper_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

PrivateZookeeper& Ensemble() {
  static PrivateZookeeper ensemble;
  return ensemble;
}

class OpenTest : public ZookeeperTest {
 protected:
  void TearDown() override {
    for (const std::string& file : files_) std::remove(file.c_str());
  }

  ZookeeperOptions Here(const std::string& auth_file = "") const {
    ZookeeperOptions options = Options(Ensemble().servers());
    options.auth_file = auth_file;
    return options;
  }
  // In a chroot of this test's own: /millrace belongs to whoever made it.
  ZookeeperOptions Apart(const std::string& auth_file = "") const {
    ZookeeperOptions options = Here(auth_file);
    options.servers += "/" + cluster_;
    return options;
  }
  std::string AuthFile(const std::string& content, mode_t mode = 0600) {
    files_.push_back(testing::TempDir() + "zk-auth-" + Random::FromSystem().Hex(12));
    std::ofstream(files_.back()) << content;
    chmod(files_.back().c_str(), mode);
    return files_.back();
  }
  static void ExpectInvalid(const Status& status, const std::string& what) {
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::Invalid);
    EXPECT_THAT(status.error().message, HasSubstr(what));
  }
  // What a person does with zkCli: from the root, and without a digest.
  static void MakeByHand(const std::string& path) {
    ZookeeperSession root({.hosts = Ensemble().servers(), .session_timeout = std::chrono::seconds(2)});
    ASSERT_EQ(Persist(root, Write({Create(path)})).status, TreeStatus::Ok);
  }

  std::vector<std::string> files_;
};

TEST_F(OpenTest, MakesTheFixedNodesAndLeavesThoseThatAreThere) {
  auto session = Connect(Here());
  for (const FixedNode& node : kFixedNodes) {
    const TreeReply reply = session->Perform(Get(std::string(node.path)));
    EXPECT_EQ(reply.status, TreeStatus::Ok) << reply.message;
    EXPECT_EQ(reply.node.data, node.data);
  }
  ASSERT_EQ(session->Perform(Write({Set("/epoch", R"({"epoch":7})")})).status, TreeStatus::Ok);
  EXPECT_TRUE(PrepareZookeeper(Here(), kSoon));
  EXPECT_EQ(session->Perform(Get("/epoch")).node.data, R"({"epoch":7})");
}

TEST_F(OpenTest, ClustersOfDifferentNamesShareAChroot) {
  auto one = Connect(Here());
  ZookeeperOptions options = Here();
  options.cluster += "-b";
  auto two = Connect(options);
  ASSERT_EQ(one->Perform(Write({Create("/workers/w1")})).status, TreeStatus::Ok);
  EXPECT_EQ(two->Perform(Get("/workers/w1")).status, TreeStatus::NotFound);
}

TEST_F(OpenTest, AMissingChrootIsNamedWithTheCommandsThatMakeIt) {
  const std::string chroot = "/" + cluster_;
  ZookeeperOptions options = Options(Ensemble().servers() + chroot + "/blue");
  const Status missing = PrepareZookeeper(options, kSoon);
  ExpectInvalid(missing, "the chroot " + chroot + "/blue does not exist");
  EXPECT_THAT(missing.error().message,
              HasSubstr("zkCli.sh -server " + Ensemble().servers() + " create " + chroot + "/blue"));
  MakeByHand(chroot);
  MakeByHand(chroot + "/blue");
  auto session = Connect(options);
  EXPECT_EQ(session->Perform(Get("/epoch")).status, TreeStatus::Ok);
}

TEST_F(OpenTest, AWrongAddressIsNamedWithinTheLimit) {
  const BootTime start = BootClock::now();
  for (const char* servers : {"127.0.0.1:1", "no-such-host.invalid:2181"}) {
    const Status away = PrepareZookeeper(Options(servers), milliseconds(500));
    ASSERT_FALSE(away);
    EXPECT_EQ(away.error().code, ErrorCode::Unavailable);
    EXPECT_THAT(away.error().message, HasSubstr("can't reach ZooKeeper at " + std::string(servers)));
  }
  EXPECT_LT(BootClock::now() - start, std::chrono::seconds(8));
}

TEST_F(OpenTest, WhatIsNoAddressOrNameOrTimeIsRefused) {
  ExpectInvalid(PrepareZookeeper(Options("here:there"), kSoon), "here:there");
  EXPECT_EQ(OpenZookeeper(Options("")).error().code, ErrorCode::Invalid);
  ZookeeperOptions options = Here();
  options.cluster = "a/b";
  ExpectInvalid(PrepareZookeeper(options, kSoon), "a/b");
  options = Here();
  options.session_timeout = milliseconds(1);
  ExpectInvalid(PrepareZookeeper(options, kSoon), "session time-out");
}

TEST_F(OpenTest, ADigestKeepsOthersOutAndLetsItsOwnIn) {
  MakeByHand("/" + cluster_);
  const auto with = [&](const std::string& file) { return Apart(file); };
  const std::string own = AuthFile("millrace:secret\n");
  auto session = Connect(with(own));
  auto colleague = Connect(with(AuthFile("millrace:secret")));
  ASSERT_EQ(session->Perform(Write({Create("/workers/w1", "x")})).status, TreeStatus::Ok);
  EXPECT_EQ(colleague->Perform(Write({Set("/workers/w1", "y"), Remove("/workers/w1")})).status,
            TreeStatus::Ok);

  const std::string wrong = AuthFile("millrace:guess");
  ExpectInvalid(PrepareZookeeper(with(wrong), kSoon), "another digest than the one in " + wrong);
  ExpectInvalid(PrepareZookeeper(with(""), kSoon), "--zk-auth-file");
  auto stranger = Open(with(wrong));
  ASSERT_TRUE(AwaitEvent(*stranger, TreeEvent::Kind::Connected, kSoon));
  EXPECT_EQ(stranger->Perform(Get("/epoch")).status, TreeStatus::Denied);
  EXPECT_EQ(stranger->Perform(List("/workers")).status, TreeStatus::Denied);
  const TreeReply refused = stranger->Perform(Write({Set("/epoch", "mine")}));
  EXPECT_EQ(refused.status, TreeStatus::Denied);
  EXPECT_THAT(refused.message, HasSubstr("set /epoch"));
  EXPECT_THAT(refused.message, Not(HasSubstr("guess")));
}

TEST_F(OpenTest, AClusterThatWasMadeOpenIsRefusedWithADigestUntilItIsProtected) {
  MakeByHand("/" + cluster_);
  auto stranger = Connect(Apart());
  for (const char* path : {"/assign/w1", "/assign/w1/1", "/config/by hand"})
    ASSERT_EQ(stranger->Perform(Write({Create(path, "x")})).status, TreeStatus::Ok);
  ASSERT_EQ(stranger->Perform(Write({Create("/workers/w1", "x")})).status, TreeStatus::Ok);
  const ZookeeperOptions ours = Apart(AuthFile("millrace:secret"));
  ExpectInvalid(PrepareZookeeper(ours, kSoon), "millrace cluster protect --zk-auth-file " + ours.auth_file);
  ExpectInvalid(FindCluster(ours, kSoon), "millrace cluster protect");

  const auto done = ProtectZookeeper(ours, kSoon);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->nodes, kFixedNodes.size() + 5);
  EXPECT_EQ(done->closed, done->nodes);
  EXPECT_EQ(done->without_digest, std::vector<std::string>{"w1"});
  EXPECT_TRUE(PrepareZookeeper(ours, kSoon));
  for (const char* path : {"/", "/epoch", "/assign/w1/1", "/workers/w1"})
    EXPECT_EQ(stranger->Perform(Get(path)).status, TreeStatus::Denied) << path;
  auto session = Connect(ours);
  EXPECT_EQ(session->Perform(Get("/assign/w1/1")).node.data, "x");
  EXPECT_EQ(ProtectZookeeper(ours, kSoon)->closed, 0u);
}

TEST_F(OpenTest, ALargeClusterIsProtectedInWindowsThatAreUnderWayAtOnce) {
  constexpr std::size_t kWorkers = 350;
  MakeByHand("/" + cluster_);
  auto stranger = Connect(Apart());
  for (std::size_t i = 0; i < kWorkers; ++i) {
    const std::string id = "w" + std::to_string(i);
    ASSERT_EQ(stranger
                  ->Perform(Write({Create("/workers/" + id, "x"), Create("/assign/" + id, "x"),
                                   Create("/assign/" + id + "/1", "x")}))
                  .status,
              TreeStatus::Ok);
  }
  const ZookeeperOptions ours = Apart(AuthFile("millrace:secret"));
  const auto done = ProtectZookeeper(ours, kSoon);
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_EQ(done->nodes, kFixedNodes.size() + 1 + 3 * kWorkers);
  EXPECT_EQ(done->closed, done->nodes);
  EXPECT_EQ(done->without_digest.size(), kWorkers);
  for (const char* path : {"/workers/w0", "/workers/w349", "/assign/w123/1"})
    EXPECT_EQ(stranger->Perform(Get(path)).status, TreeStatus::Denied) << path;
  EXPECT_EQ(ProtectZookeeper(ours, kSoon)->closed, 0u);
}

TEST_F(OpenTest, AClusterOfAnotherDigestOrNoneAtAllCanNotBeProtected) {
  MakeByHand("/" + cluster_);
  const ZookeeperOptions ours = Apart(AuthFile("millrace:secret"));
  EXPECT_THAT(ProtectZookeeper(ours, kSoon).error().message, HasSubstr("there is no cluster"));
  auto session = Connect(ours);
  EXPECT_THAT(ProtectZookeeper(Apart(AuthFile("millrace:guess")), kSoon).error().message,
              HasSubstr("another digest"));
  EXPECT_THAT(ProtectZookeeper(Apart(), kSoon).error().message, HasSubstr("--zk-auth-file"));
}

TEST_F(OpenTest, AnAuthFileThatOthersCanReadOrThatHoldsNoDigestIsRefused) {
  const std::string open = AuthFile("millrace:secret", 0644);
  ExpectInvalid(PrepareZookeeper(Here(open), kSoon), "chmod 600 " + open);
  ExpectInvalid(PrepareZookeeper(Here("/no/such/file"), kSoon), "/no/such/file");
  for (const char* content : {"", "secret\n", ":secret", "millrace:"}) {
    const Status refused = PrepareZookeeper(Here(AuthFile(content)), kSoon);
    ExpectInvalid(refused, "user:password");
    EXPECT_THAT(refused.error().message, Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace millrace::engine
