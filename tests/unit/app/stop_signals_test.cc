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

}  // namespace
}  // namespace millrace::engine
