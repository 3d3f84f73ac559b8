#include "coordinator/app/process/followed_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace millrace::engine {
namespace {

class FollowedFileTest : public testing::Test {
 protected:
  FollowedFileTest() { Write("one"); }
  ~FollowedFileTest() override { std::filesystem::remove(path_); }

  void Write(const std::string& text) const { std::ofstream(path_) << text; }
  // A second later.
  bool Changed(FollowedFile& file) {
    now_ += std::chrono::seconds(1);
    return file.Changed(now_);
  }

  const std::string path_ = testing::TempDir() + "followed";
  BootTime now_{};
};

TEST_F(FollowedFileTest, AChangeIsToldOnceItIsASecondOld) {
  FollowedFile file(path_);
  EXPECT_FALSE(Changed(file));
  Write("longer");
  EXPECT_FALSE(Changed(file)) << "who writes it may not have done";
  EXPECT_FALSE(file.Changed(now_)) << "asked again at once";
  EXPECT_TRUE(Changed(file));
  EXPECT_FALSE(Changed(file));
}

TEST_F(FollowedFileTest, AFileThatIsReplacedHasChanged) {
  FollowedFile file(path_);
  std::filesystem::remove(path_);
  EXPECT_FALSE(Changed(file));
  EXPECT_FALSE(Changed(file)) << "there is nothing to read";
  Write("two");
  EXPECT_FALSE(Changed(file));
  EXPECT_TRUE(Changed(file));
}

TEST_F(FollowedFileTest, WhatIsNoFileDoesNotChange) {
  FollowedFile none("");
  FollowedFile folder(testing::TempDir());
  EXPECT_FALSE(Changed(none));
  std::filesystem::create_directory(testing::TempDir() + "new");
  EXPECT_FALSE(Changed(folder));
  EXPECT_FALSE(Changed(folder));
  std::filesystem::remove(testing::TempDir() + "new");
}

}  // namespace
}  // namespace millrace::engine
