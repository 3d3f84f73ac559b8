#include "coordinator/app/command/ring_workers.h"

#include <gmock/gmock.h>

namespace millrace::engine {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const ShardRing kRing{"main", {kDefaultTable, {}}};

TEST(WorkerBellsTest, OnlyWhoListensAndMayHaveAPartIsRung) {
  std::map<std::string, WorkerDocument> workers;
  workers["w1"] = {.host = "a", .doorbell = "10.0.0.1:7"};
  workers["w2"] = {.host = "a"};
  workers["w3"] = {.host = "a", .limits = {.shards = {{"east", "main"}}}, .doorbell = "10.0.0.3:7"};
  workers["w4"] = {.host = "a", .limits = {.shards = {{"east"}}}, .doorbell = "10.0.0.4:7"};
  EXPECT_THAT(WorkerBells(workers, "b").AddressesFor(kRing), ElementsAre("10.0.0.1:7", "10.0.0.3:7"));
  EXPECT_THAT(WorkerBells().AddressesFor(kRing), IsEmpty());
}

TEST(WorkerBellsTest, ALoopbackIsItsOwnHostsAlone) {
  const std::map<std::string, WorkerDocument> workers{{"w1", {.host = "a", .doorbell = "127.0.0.1:7"}},
                                                      {"w2", {.host = "b", .doorbell = "127.0.0.1:8"}},
                                                      {"w3", {.host = "b", .doorbell = "[::1]:9"}}};
  EXPECT_THAT(WorkerBells(workers, "a").AddressesFor(kRing), ElementsAre("127.0.0.1:7"));
}

TEST(WorkerBellsTest, ARingArrives) {
  const auto socket = RingSocket::Open("127.0.0.1");
  ASSERT_TRUE(socket) << socket.error().message;
  WorkerBells({{"w1", {.host = "a", .doorbell = (*socket)->address()}}}, "a").Ring(kRing);
  EXPECT_EQ((*socket)->Wait(seconds(10)), kRing);
}

}  // namespace
}  // namespace millrace::engine
