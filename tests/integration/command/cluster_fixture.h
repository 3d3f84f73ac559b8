// The real binary on a cluster of its own, whose nodes a test may write as workers and people would.
#pragma once

#include <memory>
#include <string>

#include "coordinator/coordination/zookeeper/zookeeper.h"
#include "framework/base/random.h"
#include "tests/integration/command/command_fixture.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/private_zookeeper.h"
#include "tests/support/tree_words.h"

namespace millrace::engine::testing {

inline constexpr Micros kSoon = std::chrono::seconds(10);

inline PrivateZookeeper& Ensemble() {
  static PrivateZookeeper ensemble;
  return ensemble;
}

class ClusterCommandTest : public CommandTest {
 protected:
  ClusterCommandTest() {
    const ZookeeperOptions options{.servers = Ensemble().servers(), .cluster = cluster_};
    EXPECT_TRUE(PrepareZookeeper(options, kSoon));
    auto session = OpenZookeeper(options);
    EXPECT_TRUE(session && AwaitEvent(**session, TreeEvent::Kind::Connected, kSoon));
    session_ = std::move(*session);
    EXPECT_EQ(Ask("schema apply").exit_code, 0);
  }

  ProcessResult Ask(const std::string& what) const { return InFolder(Binary() + " " + what); }
  // A command of the shell that finds the cluster.
  ProcessResult InFolder(const std::string& command) const {
    return RunProcess("cd " + folder_ + " && export HOME=" + folder_ + " MILLRACE_PASSWORD_FILE=" +
                          database_.password_file() + " MILLRACE_ZK=" + Ensemble().servers() +
                          " MILLRACE_CLUSTER=" + cluster_ + " MILLRACE_STORE=" + Store() + " && " + command,
                      60);
  }
  void Type(TreeWrite write) {
    EXPECT_EQ(session_->Perform(engine::Write({std::move(write)})).status, TreeStatus::Ok);
  }
  // From now on it is for those of a digest that no command has.
  void Hide(const std::string& path) {
    const std::string file = folder_ + "/others-digest";
    EXPECT_EQ(RunProcess("umask 077 && echo others:secret >" + file, 60).exit_code, 0);
    auto others = OpenZookeeper({.servers = Ensemble().servers(), .cluster = cluster_, .auth_file = file});
    ASSERT_TRUE(others && AwaitEvent(**others, TreeEvent::Kind::Connected, kSoon));
    Type(Remove(path));
    EXPECT_EQ((*others)->Perform(engine::Write({Create(path, "{}")})).status, TreeStatus::Ok);
  }
  TreeNode Look(const std::string& path) { return session_->Perform(Get(path)).node; }
  // A worker that is there, with these task types.
  void Register(const std::string& id, const std::string& types) {
    Type(CreateEphemeral("/workers/" + id, R"({"incarnation":")" + id + R"(.1","handlers":)" + types + "}"));
  }

  std::string Store() const {
    const StoreUrl& url = database_.url();
    return "mysql://" + url.user + "@" + url.host + ":" + std::to_string(url.port) + "/" + url.database;
  }

 private:
  const std::string cluster_ = "t" + Random::FromSystem().Hex(12);
  TestDatabase database_;
  std::unique_ptr<TreeSession> session_;
};

}  // namespace millrace::engine::testing
