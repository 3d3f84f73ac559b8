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

TEST_F(FilesTest, ReadsAFileWhole) {
  const std::string text = std::string(40'000, 'x') + std::string(1, '\0') + "\r\nend";
  std::ofstream(root_ / "long", std::ios::binary) << text;
  std::ofstream(root_ / "empty").flush();
  EXPECT_EQ(*ReadFileText(root_ / "long"), text);
  EXPECT_EQ(*ReadFileText(root_ / "empty"), "");
}

TEST_F(FilesTest, SaysWhyAFileCannotBeRead) {
  const std::string missing = root_ / "missing";
  EXPECT_EQ(ReadFileText(missing).error().message, missing + " can't be read: No such file or directory");
  EXPECT_THAT(ReadFileText(root_).error().message, HasSubstr("can't be read: Is a directory"));
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
