#include "framework/doorbell/datagram.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

namespace millrace::engine {
namespace {

using std::chrono::seconds;

TEST(DatagramTest, ARingIsReadAsItIsWritten) {
  for (const ShardRing& ring : {ShardRing{"main", {kDefaultTable, {1, 2, 3, 17}}},
                                ShardRing{"main", {TableName("tasks_001"), {}}}, ShardRing{"east-1", {}}}) {
    EXPECT_EQ(ReadShardRing(ToText(ring)), ring) << ToText(ring);
  }
  EXPECT_EQ(ToText({"main", {kDefaultTable, {1, 2, 3, 17}}}), "millrace-ring 1 main tasks 1-3,17");
  EXPECT_EQ(ToText({"main", {}}), "millrace-ring 1 main * *");
}

TEST(DatagramTest, SlicesThatDoNotFitAreAll) {
  ShardRing ring{"main", {kDefaultTable, {}}};
  for (std::uint32_t slice = 0; slice < 16'384; slice += 2) ring.ring.slices.push_back(slice);
  EXPECT_EQ(ReadShardRing(ToText(ring)), (ShardRing{"main", {kDefaultTable, {}}}));
}

TEST(DatagramTest, AnythingElseIsNoRing) {
  for (const char* text :
       {"", "millrace-ring", "millrace-ring 2 main tasks *", "other 1 main tasks *",
        "millrace-ring 1 main Tasks *", "millrace-ring 1 main tasks 1,x", "millrace-ring 1 main tasks",
        "millrace-ring 1 main tasks * more", "millrace-ring 1 main tasks 99999"}) {
    EXPECT_EQ(ReadShardRing(text), std::nullopt) << text;
  }
  EXPECT_EQ(ReadShardRing("millrace-ring 1 main tasks *" + std::string(5000, ' ')), std::nullopt);
}

TEST(DatagramTest, ARingReachesTheSocketThatItsAddressNames) {
  const auto socket = RingSocket::Open("127.0.0.1");
  ASSERT_TRUE(socket) << socket.error().message;
  const ShardRing ring{"main", {kDefaultTable, {5}}};
  SendRing(std::vector{(*socket)->address()}, ring);
  EXPECT_EQ((*socket)->Wait(seconds(10)), ring);
}

TEST(DatagramTest, WhoHasNoDescriptorLeftRingsNobodyAndGoesOn) {
  const auto socket = RingSocket::Open("127.0.0.1");
  ASSERT_TRUE(socket) << socket.error().message;
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  SendRing(std::vector{(*socket)->address()}, {"main", {kDefaultTable, {1}}});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  const ShardRing heard{"main", {kDefaultTable, {2}}};
  SendRing(std::vector{(*socket)->address()}, heard);
  EXPECT_EQ((*socket)->Wait(seconds(10)), heard);
}

TEST(DatagramTest, AnInterruptEndsAWait) {
  const auto socket = RingSocket::Open("127.0.0.1:0");
  ASSERT_TRUE(socket) << socket.error().message;
  (*socket)->Interrupt();
  EXPECT_EQ((*socket)->Wait(seconds(60)), std::nullopt);
}

TEST(DatagramTest, AnAddressThatIsNoneIsRefusedAndRingsNobody) {
  for (const char* address :
       {"", "localhost:1", "10.0.0.1:x", "10.0.0.1:99999", "10.0.0:1:2:3", "0.0.0.0:7460", "[::]:7460"}) {
    const auto socket = RingSocket::Open(address);
    ASSERT_FALSE(socket) << address;
    EXPECT_EQ(socket.error().code, ErrorCode::Invalid) << address;
    SendRing(std::vector<std::string>{address}, {"main", {}});
  }
  const auto first = RingSocket::Open("127.0.0.1");
  const auto second = RingSocket::Open((*first)->address());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace millrace::engine
