#include "framework/store/sqlite/lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "framework/testing/manual_clock.h"

namespace millrace::engine {
namespace {

TEST(SqliteLockTest, OneHolderAtATimeAndTheRefusalNamesIt) {
  std::string folder = (std::filesystem::temp_directory_path() / "millrace_XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  {
    auto first = sqlite::Lock::Take(folder + "/a.db");
    ASSERT_TRUE(first) << first.error().message;
    const auto second = sqlite::Lock::Take(folder + "/a.db");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::Conflict);
    EXPECT_NE(second.error().message.find(std::to_string(getpid())), std::string::npos);
    EXPECT_TRUE(sqlite::Lock::Take(folder + "/b.db"));
  }
  EXPECT_TRUE(sqlite::Lock::Take(folder + "/a.db")) << "the lock went with its holder";
  std::filesystem::remove_all(folder);
}

TEST(ManualClockTest, MovesOnlyWhenItIsTold) {
  ManualClock clock;
  const BootTime boot = clock.Now();
  const WallTime wall = clock.WallNow();
  clock.Advance(Micros(5));
  clock.StepWall(Micros(-100));
  EXPECT_EQ(clock.Now() - boot, Micros(5));
  EXPECT_EQ(clock.WallNow() - wall, Micros(-95));
}

}  // namespace
}  // namespace millrace::engine
