#include "framework/http/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::engine {
namespace {

std::string Read(std::string_view text) {
  const auto address = ParseHttpAddress(text);
  return address ? ToText(*address) : "refused";
}

TEST(HttpAddressTest, IsAHostAndAPort) {
  EXPECT_EQ(Read("127.0.0.1:9470"), "127.0.0.1:9470");
  EXPECT_EQ(Read("0.0.0.0:0"), "0.0.0.0:0");
  EXPECT_EQ(Read("[::1]:9470"), "[::1]:9470");
  EXPECT_EQ(Read("worker-1.example.com:80"), "worker-1.example.com:80");
}

TEST(HttpAddressTest, MeansThisMachineWithoutAHost) { EXPECT_EQ(Read(":9470"), "127.0.0.1:9470"); }

TEST(HttpAddressTest, RefusesWhatIsNone) {
  for (const char* text : {"", "9470", "localhost", ":", ":x", ":65536", ":-1", "::1:9470", "[::1]",
                           "[::1:9470", "[x]:1", "a b:1", "http://a:1", "user@a:1", "a:1 ", "\x1b[2J:1"}) {
    EXPECT_EQ(Read(text), "refused") << text;
  }
  EXPECT_THAT(ParseHttpAddress("localhost").error().message, ::testing::HasSubstr("write host:port"));
}

TEST(HttpAddressTest, KnowsTheNamesOfThisMachine) {
  for (const char* host : {"localhost", "LocalHost:80", "localhost.", "a.localhost:1", "127.0.0.1",
                           "127.8.9.10:9470", "[::1]", "[::1]:9470"}) {
    EXPECT_TRUE(NamesThisMachine(host)) << host;
  }
}

TEST(HttpAddressTest, KnowsForeignNames) {
  for (const char* host : {"", "evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1",
                           "[::2]", "[::1].evil.example", "[::1]x", "localhost:x", "localhost:80:80", "127.1",
                           "2130706433", "0.0.0.0", "[127.0.0.1]", "::1"}) {
    EXPECT_FALSE(NamesThisMachine(host)) << host;
  }
}

}  // namespace
}  // namespace millrace::engine
