#include "coordinator/app/command/stop_signals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

namespace millrace::engine {
namespace {

// In a process of its own, since signals stay counted.
TEST(StopSignalsTest, ThoseOfOneEventCountOnceAndALaterOneCounts) {
  const auto in_child = [] {
    CatchStopSignals();
    std::raise(SIGTERM);
    std::raise(SIGHUP);
    std::raise(SIGHUP);
    if (StopSignalsSeen() != 1) _exit(StopSignalsSeen());
    std::this_thread::sleep_for(kOneStop + std::chrono::milliseconds(50));
    std::raise(SIGTERM);
    _exit(StopSignalsSeen() == 2 ? 0 : 10 + StopSignalsSeen());
  };
  EXPECT_EXIT(in_child(), testing::ExitedWithCode(0), "");
}

// Whichever thread the system gives a signal to.
TEST(StopSignalsTest, WhoWaitsForOneHearsItAtOnceAndEachOnce) {
  using Wait = void (*)(Micros);
  for (const Wait wait : {AwaitStopSignal, RestUnlessStopped}) {
    const auto in_child = [wait] {
      CatchStopSignals();
      const BootTime began = BootClock::now();
      std::thread other([] {
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        std::raise(SIGTERM);
      });
      wait(std::chrono::seconds(30));
      if (StopSignalsSeen() != 1 || BootClock::now() - began > std::chrono::seconds(15)) _exit(1);
      AwaitStopSignal(Micros(0));
      const BootTime heard = BootClock::now();
      RestUnlessStopped(std::chrono::seconds(30));
      WakeMain();
      AwaitStopSignal(std::chrono::seconds(30));
      if (BootClock::now() - heard > std::chrono::seconds(15)) _exit(2);
      AwaitStopSignal(std::chrono::milliseconds(100));
      if (BootClock::now() - heard < std::chrono::milliseconds(100)) _exit(3);
      other.join();
      _exit(0);
    };
    EXPECT_EXIT(in_child(), testing::ExitedWithCode(0), "");
  }
}

}  // namespace
}  // namespace millrace::engine
