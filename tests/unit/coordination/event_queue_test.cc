#include "coordinator/coordination/zookeeper/event_queue.h"

#include <gtest/gtest.h>

#include <string>

namespace millrace::engine {
namespace {

using Kind = TreeEvent::Kind;

// What waits, as a text: `+1` connected as session 1, `-` disconnected, `x` expired, a path for a change.
std::string Drain(EventQueue& queue) {
  std::string text;
  while (const auto event = queue.Take(Micros(0)).event) {
    if (!text.empty()) text += " ";
    if (event->kind == Kind::Changed) text += event->path;
    if (event->kind == Kind::Connected) text += "+" + std::to_string(event->session);
    if (event->kind == Kind::Disconnected) text += "-";
    if (event->kind == Kind::Expired) text += "x";
  }
  return text;
}

class EventQueueTest : public testing::Test {
 protected:
  void Change(const std::string& path) { queue_.Push({.kind = Kind::Changed, .path = path}); }
  void Connect(std::int64_t session) { queue_.Push({.kind = Kind::Connected, .session = session}); }
  void Disconnect() { queue_.Push({.kind = Kind::Disconnected}); }
  void Expire() { queue_.Push({.kind = Kind::Expired}); }

  EventQueue queue_;
};

TEST_F(EventQueueTest, GivesWhatWasPushedInItsOrder) {
  Connect(1);
  Change("/a");
  Change("/b");
  EXPECT_EQ(Drain(queue_), "+1 /a /b");
}

TEST_F(EventQueueTest, HoldsAPathOnce) {
  Change("/a");
  Change("/b");
  Change("/a");
  EXPECT_EQ(Drain(queue_), "/a /b");
  Change("/a");
  EXPECT_EQ(Drain(queue_), "/a");
}

TEST_F(EventQueueTest, AFlappingConnectionEndsInWhatIsTrueNow) {
  for (int i = 0; i < 100; ++i) {
    Disconnect();
    Connect(1);
  }
  EXPECT_EQ(Drain(queue_), "- +1");
  Disconnect();
  Connect(1);
  Disconnect();
  Disconnect();
  EXPECT_EQ(Drain(queue_), "-");
}

TEST_F(EventQueueTest, TheEndOfASessionTakesItsNewsWithIt) {
  Change("/a");
  Disconnect();
  Connect(1);
  Expire();
  Connect(2);
  EXPECT_EQ(Drain(queue_), "x +2");
}

TEST_F(EventQueueTest, AnInterruptIsKeptForTheNextWaitAndComesAfterTheEvents) {
  queue_.Interrupt();
  Change("/a");
  EXPECT_TRUE(queue_.Take(std::chrono::hours(1)).event);
  EXPECT_TRUE(queue_.Take(std::chrono::hours(1)).interrupted);
  const auto none = queue_.Take(Micros(0));
  EXPECT_FALSE(none.event);
  EXPECT_FALSE(none.interrupted);
}

}  // namespace
}  // namespace millrace::engine
