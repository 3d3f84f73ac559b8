#include "framework/store/sqlite/lock.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

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

// A folder that goes with the test.
struct LockFolder {
  LockFolder() : path((std::filesystem::temp_directory_path() / "millrace_XXXXXX").string()) {
    EXPECT_NE(mkdtemp(path.data()), nullptr);
  }
  ~LockFolder() { std::filesystem::remove_all(path); }
  std::string path;
};

void ExpectTaken(const std::string& path) {
  const auto second = sqlite::Lock::Take(path);
  ASSERT_FALSE(second) << path;
  EXPECT_EQ(second.error().code, ErrorCode::Conflict) << second.error().message;
}

TEST(SqliteLockTest, AFileHasOneLockWhateverLinksLeadToIt) {
  const LockFolder folder;
  const auto in = [&](const char* name) { return folder.path + "/" + name; };
  std::filesystem::create_directory(in("real"));
  std::ofstream(in("real/a.db")).put('x');
  std::filesystem::create_directory_symlink("real", in("linked"));
  std::filesystem::create_symlink("real/a.db", in("b.db"));
  std::filesystem::create_symlink(in("b.db"), in("c.db"));
  const auto first = sqlite::Lock::Take(in("real/a.db"));
  ASSERT_TRUE(first) << first.error().message;
  for (const char* name : {"linked/a.db", "b.db", "c.db", "real/../linked/a.db"}) ExpectTaken(in(name));
}

TEST(SqliteLockTest, SoHasOneThatIsYetToBeMade) {
  const LockFolder folder;
  const auto in = [&](const char* name) { return folder.path + "/" + name; };
  std::filesystem::create_directory(in("real"));
  std::filesystem::create_directory_symlink("real", in("linked"));
  std::filesystem::create_symlink("linked/a.db", in("b.db"));
  {
    const auto first = sqlite::Lock::Take(in("b.db"));
    ASSERT_TRUE(first) << first.error().message;
    for (const char* name : {"real/a.db", "linked/a.db"}) ExpectTaken(in(name));
    std::ofstream(in("real/a.db")).put('x');
    ExpectTaken(in("real/a.db"));
  }
  std::filesystem::create_symlink("round.db", in("round.db"));
  for (const char* name : {"round.db", "nowhere/a.db"}) {
    const auto none = sqlite::Lock::Take(in(name));
    ASSERT_FALSE(none) << name;
    EXPECT_EQ(none.error().code, ErrorCode::Unavailable) << none.error().message;
  }
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
