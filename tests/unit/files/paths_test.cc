#include "framework/files/paths.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace millrace::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class FilesTest : public ::testing::Test {
 protected:
  FilesTest() {
    char pattern[] = "/tmp/files_XXXXXX";
    root_ = mkdtemp(pattern);
    std::ofstream(root_ / "a.flight") << "a";
    std::ofstream(root_ / "b.txt") << "b";
    fs::create_symlink("loop", root_ / "loop");
  }
  ~FilesTest() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(FilesTest, TellsFoldersFilesAndNothingApart) {
  EXPECT_TRUE(IsFolder(root_).value());
  EXPECT_FALSE(IsPlainFile(root_).value());
  EXPECT_TRUE(IsPlainFile(root_ / "b.txt").value());
  EXPECT_FALSE(PathExists(root_ / "c").value());
  EXPECT_FALSE(PathExists(root_ / "b.txt" / "below").value());
}

TEST_F(FilesTest, ALoopOfLinksAndANameTooLongAreErrorsThatNameThePath) {
  for (const fs::path& path : {root_ / "loop" / "x.db", root_ / std::string(300, 'n')}) {
    const auto there = PathExists(path);
    ASSERT_FALSE(there.has_value());
    EXPECT_EQ(there.error().code, ErrorCode::Invalid);
    EXPECT_THAT(there.error().message, HasSubstr(path.string()));
    EXPECT_THAT(FilesIn(path, ".so").error().message, HasSubstr(path.string()));
  }
}

TEST_F(FilesTest, ListsWhatEndsSo) {
  EXPECT_THAT(FilesIn(root_, ".flight").value(), ElementsAre((root_ / "a.flight").string()));
  EXPECT_EQ(StemOf("x/noop.so"), "noop");
}

}  // namespace
}  // namespace millrace::engine
