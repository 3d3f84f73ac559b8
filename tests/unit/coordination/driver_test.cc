#include "coordinator/coordination/driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <thread>

#include "tests/support/hand_over.h"

namespace millrace::engine {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using testing::ElementsAre;

constexpr Micros kLimit = seconds(10);

// Events come from the test; replies say what it was told to say.
class FakeSession final : public TreeSession {
 public:
  struct Wires {
    HandOver<TreeEvent> events;
    HandOver<int> together;  // so many requests were sent at once
    std::atomic<TreeStatus> reply{TreeStatus::Ok};
    std::atomic<int> performed{0};
    std::atomic<bool> closed{false};
    std::atomic<bool> lingers{false};  // a wait lasts until it is told otherwise, whatever its limit
  };
  explicit FakeSession(Wires& wires) : wires_(wires) {}
  ~FakeSession() override { wires_.closed = true; }

  std::vector<TreeReply> PerformAll(const std::vector<TreeRequest>& requests) override {
    wires_.performed += static_cast<int>(requests.size());
    wires_.together.Push(static_cast<int>(requests.size()));
    return std::vector<TreeReply>(requests.size(), {.status = wires_.reply});
  }
  std::optional<TreeEvent> WaitEvent(Micros limit) override {
    auto taken = wires_.events.Take(1, wires_.lingers ? kLimit : limit);
    if (taken.empty() || taken[0].path == kInterrupt) return std::nullopt;
    return taken[0];
  }
  void Interrupt() override { wires_.events.Push({.path = kInterrupt}); }
  BootTime LastContact() const override { return BootTime(seconds(7)); }
  Micros Timeout() const override { return seconds(3); }

 private:
  static constexpr const char* kInterrupt = "interrupt";
  Wires& wires_;
};

// Asks for the paths it is given, and hands what it hears to the test.
class FakeMachine final : public TreeMachine {
 public:
  explicit FakeMachine(std::string name, HandOver<std::string>& heard)
      : name_(std::move(name)), heard_(heard) {}
  void Event(const TreeEvent& event, BootTime) override { heard_.Push(name_ + " event " + event.path); }
  std::optional<TreeRequest> Next(BootTime) override {
    if (wishes.empty()) return std::nullopt;
    TreeRequest request{.path = wishes.front()};
    if (request.path.starts_with("write")) request.kind = TreeRequest::Kind::Write;
    wishes.pop_front();
    return request;
  }
  void Replied(const TreeRequest& request, const TreeReply& reply, BootTime) override {
    heard_.Push(name_ + " " + request.path + " " + ToString(reply.status));
  }
  BootTime WakeAt(BootTime now) const override { return now + wake_in; }

  std::optional<TreeRequest> Farewell() override {
    if (farewell.empty()) return std::nullopt;
    heard_.Push(name_ + " farewell");
    return TreeRequest{.path = farewell};
  }

  std::string farewell;            // the path of its last request
  std::deque<std::string> wishes;  // before the start, or by a callback
  Micros wake_in = hours(10);

 private:
  const std::string name_;
  HandOver<std::string>& heard_;
};

class DriverTest : public testing::Test {
 protected:
  std::unique_ptr<TreeSession> Session() { return std::make_unique<FakeSession>(wires_); }
  // The next `count` things the machines heard.
  std::vector<std::string> Heard(std::size_t count) {
    std::vector<std::string> all;
    while (all.size() < count) {
      const auto some = heard_.Take(count - all.size(), kLimit);
      if (some.empty()) break;
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  SystemClock clock_;
  FakeSession::Wires wires_;
  HandOver<std::string> heard_;
  FakeMachine a_{"a", heard_};
  FakeMachine b_{"b", heard_};
};

TEST_F(DriverTest, TheReadsOfAllMachinesGoOutTogether) {
  a_.wishes = {"/1", "/2", "/3"};
  b_.wishes = {"/4"};
  Driver driver(Session(), {&a_, &b_}, clock_);
  ASSERT_TRUE(driver.Start());
  EXPECT_THAT(Heard(4), ElementsAre("a /1 ok", "a /2 ok", "a /3 ok", "b /4 ok"));
  EXPECT_THAT(wires_.together.Take(10, kLimit), ElementsAre(4));
}

TEST_F(DriverTest, AMachineWithVeryManyReadsHoldsUpNobodyForLong) {
  for (int i = 0; i < 250; ++i) a_.wishes.push_back("/x");
  Driver driver(Session(), {&a_, &b_}, clock_);
  ASSERT_TRUE(driver.Start());
  Heard(250);
  EXPECT_THAT(wires_.together.Take(10, kLimit), ElementsAre(100, 100, 50));
}

TEST_F(DriverTest, NothingIsAskedBeforeTheAnswerToAWrite) {
  a_.wishes = {"/1", "write /2", "/3"};
  Driver driver(Session(), {&a_}, clock_);
  ASSERT_TRUE(driver.Start());
  EXPECT_THAT(Heard(3), ElementsAre("a /1 ok", "a write /2 ok", "a /3 ok"));
  EXPECT_THAT(wires_.together.Take(10, kLimit), ElementsAre(2, 1));
}

TEST_F(DriverTest, EveryMachineHearsEveryEvent) {
  Driver driver(Session(), {&a_, &b_}, clock_);
  ASSERT_TRUE(driver.Start());
  wires_.events.Push({.path = "/x"});
  wires_.events.Push({.path = "/y"});
  EXPECT_THAT(Heard(4), ElementsAre("a event /x", "b event /x", "a event /y", "b event /y"));
}

TEST_F(DriverTest, ALostRequestIsNotFollowedByTheNextBeforeThereIsNews) {
  wires_.reply = TreeStatus::Lost;
  a_.wishes = {"write /1", "/2"};
  Driver driver(Session(), {&a_}, clock_);
  ASSERT_TRUE(driver.Start());
  EXPECT_THAT(Heard(1), ElementsAre("a write /1 connection lost"));
  wires_.reply = TreeStatus::Ok;
  wires_.events.Push({.path = "/x"});
  EXPECT_THAT(Heard(2), ElementsAre("a event /x", "a /2 ok"));
}

TEST_F(DriverTest, WithoutNewsALostRequestIsFollowedAfterAWhile) {
  wires_.reply = TreeStatus::Lost;
  a_.wishes = {"write /1", "/2"};
  const BootTime start = clock_.Now();
  Driver driver(Session(), {&a_}, clock_);
  ASSERT_TRUE(driver.Start());
  EXPECT_THAT(Heard(2), ElementsAre("a write /1 connection lost", "a /2 connection lost"));
  EXPECT_GE(clock_.Now() - start, std::chrono::milliseconds(100));
}

TEST_F(DriverTest, AMachineIsAskedAgainAtItsTime) {
  class Alarm final : public TreeMachine {
   public:
    explicit Alarm(HandOver<std::string>& heard) : heard_(heard) {}
    void Event(const TreeEvent&, BootTime) override {}
    std::optional<TreeRequest> Next(BootTime now) override {
      if (++asked_ == 2) heard_.Push("asked");
      due_ = now + std::chrono::milliseconds(5);
      return std::nullopt;
    }
    void Replied(const TreeRequest&, const TreeReply&, BootTime) override {}
    BootTime WakeAt(BootTime) const override { return due_; }

   private:
    HandOver<std::string>& heard_;
    int asked_ = 0;
    BootTime due_{};
  } alarm(heard_);
  Driver driver(Session(), {&a_, &alarm}, clock_);
  ASSERT_TRUE(driver.Start());
  EXPECT_THAT(Heard(1), ElementsAre("asked"));
}

TEST_F(DriverTest, AWakeAsksTheMachinesAgain) {
  class Sleeper final : public TreeMachine {
   public:
    explicit Sleeper(HandOver<std::string>& heard) : heard_(heard) {}
    void Event(const TreeEvent&, BootTime) override {}
    std::optional<TreeRequest> Next(BootTime) override {
      heard_.Push("asked");
      return std::nullopt;
    }
    void Replied(const TreeRequest&, const TreeReply&, BootTime) override {}
    BootTime WakeAt(BootTime now) const override { return now + hours(1); }

   private:
    HandOver<std::string>& heard_;
  } sleeper(heard_);
  Driver driver(Session(), {&sleeper}, clock_);
  ASSERT_TRUE(driver.Start());
  EXPECT_THAT(Heard(1), ElementsAre("asked"));
  driver.Wake();
  EXPECT_THAT(Heard(1), ElementsAre("asked"));
}

// It opens a session, and waits for name servers.
TEST_F(DriverTest, AWaitThatLastsBeyondItsLimitIsNotSaidToStandStill) {
  wires_.lingers = true;
  a_.wake_in = std::chrono::milliseconds(1);
  Driver driver(Session(), {&a_}, clock_);
  ASSERT_TRUE(driver.Start());
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_FALSE(driver.StandsStill(std::chrono::milliseconds(20)));
  wires_.lingers = false;
}

TEST_F(DriverTest, TheViewFollowsTheSession) {
  Driver driver(Session(), {&a_}, clock_);
  EXPECT_FALSE(driver.View().connected);
  ASSERT_TRUE(driver.Start());
  wires_.events.Push({.kind = TreeEvent::Kind::Connected, .session = 42});
  EXPECT_THAT(Heard(1), ElementsAre("a event "));
  const SessionView connected = driver.View();
  EXPECT_TRUE(connected.connected);
  EXPECT_EQ(connected.session, 42);
  EXPECT_EQ(connected.last_contact, BootTime(seconds(7)));
  EXPECT_EQ(connected.timeout, seconds(3));
  wires_.events.Push({.kind = TreeEvent::Kind::Disconnected});
  EXPECT_THAT(Heard(1), ElementsAre("a event "));
  EXPECT_FALSE(driver.View().connected);
}

TEST_F(DriverTest, StopClosesTheSessionAndMayBeCalledTwiceOrWithoutAStart) {
  Driver driver(Session(), {&a_}, clock_);
  ASSERT_TRUE(driver.Start());
  ASSERT_TRUE(driver.Start());
  EXPECT_FALSE(wires_.closed);
  driver.Stop();
  EXPECT_TRUE(wires_.closed);
  driver.Stop();
  driver.Wake();
  EXPECT_EQ(driver.View().last_contact, BootTime(seconds(7)));

  wires_.closed = false;
  a_.farewell = "/bye";
  Driver unstarted(Session(), {&a_}, clock_);
  unstarted.Stop();
  EXPECT_TRUE(wires_.closed);
  EXPECT_EQ(wires_.performed, 0);
}

TEST_F(DriverTest, BeforeTheSessionIsClosedEachMachineSaysFarewell) {
  a_.farewell = "/bye";
  Driver driver(Session(), {&a_, &b_}, clock_);
  ASSERT_TRUE(driver.Start());
  driver.Stop();
  EXPECT_THAT(Heard(1), ElementsAre("a farewell"));
  EXPECT_EQ(wires_.performed, 1);
}

}  // namespace
}  // namespace millrace::engine
