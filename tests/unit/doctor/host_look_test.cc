#include "coordinator/doctor/host_look.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "framework/testing/manual_clock.h"

namespace millrace::engine::doctor {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class HostLookTest : public ::testing::Test {
 protected:
  HostLookTest() {
    char pattern[] = "/tmp/millrace-doctor-XXXXXX";
    folder_ = mkdtemp(pattern);
  }
  ~HostLookTest() override { std::filesystem::remove_all(folder_); }

  std::string File(const std::string& name, const std::string& text, mode_t mode) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }

  std::string folder_;
};

TEST_F(HostLookTest, ASecretIsForItsOwnerAlone) {
  EXPECT_THAT(LookAtSecret(File("own", "x", 0600), "test").problem, IsEmpty());
  EXPECT_THAT(LookAtSecret(File("group", "x", 0640), "test").problem, HasSubstr("mode 0640"));
  EXPECT_THAT(LookAtSecret(File("all", "x", 0604), "test").problem, HasSubstr("mode 0604"));
  EXPECT_THAT(LookAtSecret(folder_ + "/none", "test").problem, HasSubstr("does not exist"));
  EXPECT_THAT(LookAtSecret(folder_, "test").problem, HasSubstr("no"));
}

// As whoever reads it does: systemd lets a service's user read its credentials by an ACL, whose mask is what
// the group's bits show.
TEST_F(HostLookTest, ACredentialMayShowTheMaskOfItsList) {
  const std::string file = File("credential", "x", 0440);
  EXPECT_THAT(LookAtSecret(file, "test").problem, HasSubstr("mode 0440"));
  setenv("CREDENTIALS_DIRECTORY", folder_.c_str(), 1);
  const std::string given = LookAtSecret(file, "test").problem;
  const std::string open = LookAtSecret(File("open", "x", 0444), "test").problem;
  unsetenv("CREDENTIALS_DIRECTORY");
  EXPECT_THAT(given, IsEmpty());
  EXPECT_THAT(open, HasSubstr("mode 0444"));
}

TEST_F(HostLookTest, AFolderThatIsYetToBeMadeHasTheRoomOfWhereItWillLie) {
  const SpaceFacts here = LookAtSpace(folder_, "the state folder");
  const SpaceFacts later = LookAtSpace(folder_ + "/a/b", "the state folder");
  EXPECT_THAT(later.problem, IsEmpty());
  EXPECT_GT(here.free_bytes, 0u);
  EXPECT_GT(later.free_bytes, 0u);
}

TEST_F(HostLookTest, AFileSystemWithoutRoomHasNone) {
  EXPECT_EQ(LookAtSpace("/proc/millrace", "the state folder").free_bytes, 0u);
}

TEST_F(HostLookTest, EachPluginIsLookedAtByItself) {
  File("broken.so", "no library", 0755);
  File("open.so", "", 0777);
  ASSERT_EQ(mkfifo((folder_ + "/pipe.so").c_str(), 0600), 0);  // nobody writes to it: it is not read
  HostFacts facts;
  LookAtPlugins(folder_, nullptr, facts);
  ASSERT_EQ(facts.plugins.size(), 3u);
  EXPECT_THAT(facts.plugins[0].problem, HasSubstr("no ELF file"));
  EXPECT_THAT(facts.plugins[1].problem, HasSubstr("written by others"));
  EXPECT_THAT(facts.plugins[2].problem, HasSubstr("not a regular file"));
  HostFacts nowhere;
  LookAtPlugins(folder_ + "/none", nullptr, nowhere);
  EXPECT_THAT(nowhere.plugin_trouble, HasSubstr("none"));
}

TEST_F(HostLookTest, TwoPluginsWithOneHandlerAreFoundThoughEachIsGood) {
  const std::string built = std::string(std::getenv("MILLRACE_BINARY_DIR")) + "/plugins/noop.so";
  for (const char* copy : {"/a.so", "/b.so"}) {
    std::filesystem::copy(built, folder_ + copy);
    ::chmod((folder_ + copy).c_str(), 0755);
  }
  HostFacts facts;
  LookAtPlugins(folder_, nullptr, facts);
  ASSERT_EQ(facts.plugins.size(), 3u);
  EXPECT_THAT(facts.plugins[0].problem + facts.plugins[1].problem, IsEmpty());
  EXPECT_THAT(facts.plugins[2].problem, HasSubstr("'noop' is in several plugins, so none of them is loaded"));
}

TEST_F(HostLookTest, TheHeaderOfAFileTellsItsJournal) {
  std::string header(100, '\0');
  header[18] = header[19] = 2;
  const auto wal = LookAtFile(File("wal.db", header, 0600));
  header[18] = header[19] = 1;
  const auto old = LookAtFile(File("old.db", header, 0602));
  ASSERT_TRUE(wal && old);
  EXPECT_TRUE(wal->wal && !wal->others_write);
  EXPECT_TRUE(!old->wal && old->others_write);
  EXPECT_FALSE(LookAtFile(folder_ + "/none.db"));
}

TEST(ClockWatchTest, AStepOfTheWallClockShowsAndTimeThatPassesDoesNot) {
  ManualClock clock;
  const ClockWatch watch(clock);
  clock.Advance(std::chrono::hours(1));
  EXPECT_EQ(watch.Step(), Micros(0));
  clock.StepWall(-std::chrono::seconds(40));
  EXPECT_EQ(watch.Step(), Micros(std::chrono::seconds(-40)));
}

}  // namespace
}  // namespace millrace::engine::doctor
