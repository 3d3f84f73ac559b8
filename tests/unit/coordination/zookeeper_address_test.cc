#include "coordinator/coordination/zookeeper/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

using testing::HasSubstr;

TEST(ZookeeperAddressTest, ReadsHostsPortsAndAChroot) {
  const auto address = ParseZookeeperAddress("zk1:2181,10.0.0.2,[::1]:2183/jobs/blue");
  ASSERT_TRUE(address);
  EXPECT_EQ(address->hosts, "zk1:2181,10.0.0.2:2181,[::1]:2183");
  EXPECT_EQ(address->chroot, "/jobs/blue");
}

TEST(ZookeeperAddressTest, ALoneSlashIsNoChroot) {
  EXPECT_EQ(ParseZookeeperAddress("zk1")->chroot, "");
  EXPECT_EQ(ParseZookeeperAddress("zk1/")->chroot, "");
}

TEST(ZookeeperAddressTest, RefusesAnythingElseAndSaysWhatToWrite) {
  for (const char* text : {"", "/jobs", ",zk1", "zk1,", "zk1:", "zk1:0", "zk1:65536", "zk1:x", "zk 1",
                           "a@zk1", "zk1/jobs/", "zk1//jobs", "zk1/jo bs", "zk1/jobs,zk2/jobs"}) {
    const auto address = ParseZookeeperAddress(text);
    ASSERT_FALSE(address) << text;
    EXPECT_EQ(address.error().code, ErrorCode::Invalid);
    EXPECT_THAT(address.error().message, HasSubstr("zk1:2181,zk2:2181/jobs"));
  }
}

TEST(ZookeeperAddressTest, RefusesAChrootWithoutEnd) {
  EXPECT_TRUE(ParseZookeeperAddress("zk1/" + std::string(254, 'a')));
  const auto address = ParseZookeeperAddress("zk1/" + std::string(255, 'a'));
  ASSERT_FALSE(address);
  EXPECT_THAT(address.error().message, HasSubstr("a chroot of 256 bytes, where 255 are allowed"));
}

TEST(ZookeeperAddressTest, NamesTheCommandsThatMakeAChrootPartByPart) {
  EXPECT_EQ(ChrootCommands(*ParseZookeeperAddress("zk1:2181/a/b")),
            "zkCli.sh -server zk1:2181 create /a; zkCli.sh -server zk1:2181 create /a/b");
}

TEST(ZookeeperAddressTest, AClusterNameBecomesANode) {
  EXPECT_TRUE(CheckClusterName("default"));
  EXPECT_TRUE(CheckClusterName("Blue_2.a-b"));
  for (const auto& name : {std::string(), std::string("a/b"), std::string("."), std::string(".."),
                           std::string("a b"), std::string(65, 'a')}) {
    EXPECT_FALSE(CheckClusterName(name)) << name;
  }
}

}  // namespace
}  // namespace millrace::engine
