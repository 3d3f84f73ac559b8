// The library looks up the servers' names by a call that may take as long as the name servers like. It calls
// what stands here: a program's own functions go before those of the libraries that it is linked with. So it
// is known, too, how many clients were opened.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <zookeeper/zookeeper.h>

#include <atomic>
#include <string_view>
#include <thread>

#include "tests/integration/zookeeper/zookeeper_fixture.h"

namespace millrace::engine {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Kind = TreeEvent::Kind;

std::atomic<int> lookups{0};
std::atomic<int> clients{0};
std::atomic<Micros> takes{Micros(0)};  // each
std::atomic<bool> colons_looked_up{false};
std::atomic<bool> brackets_looked_up{false};

class NamesTest : public ZookeeperTest {
 protected:
  ~NamesTest() override { takes = Micros(0); }

  PrivateZookeeper ensemble_;
};

TEST_F(NamesTest, WhileASessionIsConnectedNoNameIsLookedUp) {
  timeout_ = seconds(1);
  auto session = Connect(Options(ensemble_.servers()));
  ASSERT_GT(lookups, 0) << "they are counted here";
  const int before = lookups;
  // The library did so every ten seconds.
  EXPECT_FALSE(session->WaitEvent(seconds(12)));
  EXPECT_EQ(lookups, before);
}

// They are looked up when the client is opened and before it connects. Whoever is patient for a quarter of
// the session's time would begin anew before that. The library itself looks again after a third of it, on a
// busy machine more than once, with the client that there is.
TEST_F(NamesTest, AClientThatLooksUpNamesSlowlyIsNotGivenUpBeforeItHasConnected) {
  timeout_ = seconds(20);
  ASSERT_TRUE(PrepareZookeeper(Options(ensemble_.servers()), kSoon));
  takes = milliseconds(5200);
  const int before = clients;
  auto session = Open(Options(ensemble_.servers()));
  ASSERT_TRUE(AwaitEvent(*session, Kind::Connected, 4 * kSoon));
  EXPECT_EQ(clients - before, 1);
}

TEST_F(NamesTest, WhatNamesTakeIsNotOfTheTimeThatAServerHasToAnswer) {
  timeout_ = seconds(20);
  takes = milliseconds(2500);
  const Status prepared = PrepareZookeeper(Options(ensemble_.servers()), seconds(2));
  EXPECT_TRUE(prepared) << prepared.error().message;
}

TEST_F(NamesTest, ANumericAddressInBracketsIsLookedUpWithoutThem) {
  auto session = Open(Options("[::1]:2181," + ensemble_.servers()));
  ASSERT_TRUE(AwaitEvent(*session, Kind::Connected, kSoon));
  EXPECT_TRUE(colons_looked_up) << "it is looked up";
  EXPECT_FALSE(brackets_looked_up);
}

}  // namespace
}  // namespace millrace::engine

extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints, addrinfo** found) {
  using millrace::engine::lookups;
  using millrace::engine::takes;
  ++lookups;
  const std::string_view asked = name == nullptr ? "" : name;
  if (asked == "::1") millrace::engine::colons_looked_up = true;
  if (asked.find('[') != asked.npos) millrace::engine::brackets_looked_up = true;
  std::this_thread::sleep_for(takes.load());
  static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  return real(name, service, hints, found);
}

extern "C" zhandle_t* zookeeper_init2(const char* host, watcher_fn watcher, int timeout, const clientid_t* id,
                                      void* context, int flags, log_callback_fn log) {
  ++millrace::engine::clients;
  static const auto real = reinterpret_cast<decltype(&zookeeper_init2)>(dlsym(RTLD_NEXT, "zookeeper_init2"));
  return real(host, watcher, timeout, id, context, flags, log);
}
