#include "coordinator/app/paths.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace millrace::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class PathsTest : public ::testing::Test {
 protected:
  PathsTest() {
    char pattern[] = "/tmp/paths_XXXXXX";
    root_ = mkdtemp(pattern);
  }
  ~PathsTest() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(PathsTest, AStateFolderIsMadeForItsUserAlone) {
  const fs::path folder = root_ / "a" / "state";
  EXPECT_EQ(MakeStateFolder(folder).value(), folder.string());
  EXPECT_EQ(fs::status(folder).permissions(), fs::perms::owner_all);
  EXPECT_EQ(MakeStateFolder(folder).value(), folder.string());
}

TEST_F(PathsTest, AStateFolderThatOthersCanWriteIsRefused) {
  const fs::path folder = root_ / "state";
  fs::create_directory(folder);
  for (const mode_t mode : {0777U, 0775U, 01777U}) {
    ::chmod(folder.c_str(), mode);
    EXPECT_THAT(MakeStateFolder(folder).error().message,
                AllOf(HasSubstr(folder.string()), HasSubstr("chmod go-w"), HasSubstr("--state-dir")));
  }
  ::chmod(folder.c_str(), 0755);
  ::chmod(root_.c_str(), 0777);
  EXPECT_THAT(MakeStateFolder(folder).error().message, HasSubstr("above the state folder"));
}

}  // namespace
}  // namespace millrace::engine
