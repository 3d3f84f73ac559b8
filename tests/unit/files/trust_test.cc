#include "framework/files/trust.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>

namespace millrace::engine {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TrustTest : public ::testing::Test {
 protected:
  TrustTest() {
    char pattern[] = "/tmp/trust_XXXXXX";
    root_ = mkdtemp(pattern);
    leaf_ = root_ / "a" / "b";
  }
  ~TrustTest() override { fs::remove_all(root_); }
  std::string Refusal() const {
    const auto made = MakeTrustedFolder(leaf_, "cache");
    return made ? "" : made.error().message;
  }

  fs::path root_;
  fs::path leaf_;
};

TEST_F(TrustTest, WhatItMakesIsForThisUserAloneWhateverTheUmask) {
  const mode_t before = ::umask(0);
  EXPECT_EQ(MakeTrustedFolder(leaf_, "cache").value(), leaf_.string());
  ::umask(before);
  EXPECT_EQ(fs::status(root_ / "a").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(leaf_).permissions(), fs::perms::owner_all);
}

TEST_F(TrustTest, NobodyElseMayWriteTheFolderOrOneAboveIt) {
  ASSERT_EQ(Refusal(), "");
  ::chmod(leaf_.c_str(), 01777);
  EXPECT_THAT(Refusal(), AllOf(HasSubstr("the cache '" + leaf_.string() + "'"), HasSubstr("chmod go-w")));
  ::chmod(leaf_.c_str(), 0700);
  ::chmod((root_ / "a").c_str(), 0770);
  EXPECT_THAT(Refusal(), HasSubstr((root_ / "a").string() + "', above the cache"));
  ::chmod((root_ / "a").c_str(), 01777);
  EXPECT_EQ(Refusal(), "") << "in a sticky folder nobody moves what is another's";
}

TEST_F(TrustTest, AnothersFolderIsRefusedHoweverItsRightsStand) {
  ASSERT_EQ(Refusal(), "");  // makes it
  struct stat info {};
  ASSERT_EQ(::stat(leaf_.c_str(), &info), 0);
  EXPECT_EQ(TrustProblem(info), "");
  info.st_uid = ::geteuid() + 1;
  EXPECT_THAT(TrustProblem(info), HasSubstr("belongs to another user"));
  if (::geteuid() != 0) return;  // root alone can give a folder away, which shows it for all the path
  ASSERT_EQ(::chown(leaf_.c_str(), 12345, 12345), 0);
  EXPECT_THAT(Refusal(), HasSubstr("belongs to another user (uid 12345)"));
  ASSERT_EQ(::chown(leaf_.c_str(), 0, 0), 0);
  ASSERT_EQ(::chown((root_ / "a").c_str(), 12345, 12345), 0);
  ::chmod((root_ / "a").c_str(), 01755);
  EXPECT_THAT(Refusal(), HasSubstr("belongs to another user (uid 12345)"));
}

TEST_F(TrustTest, ALinkIsFollowedOnceAndTheRealPathIsWhatIsUsed) {
  ASSERT_EQ(Refusal(), "");
  fs::create_directory_symlink(leaf_, root_ / "link");
  EXPECT_EQ(TrustedFolder(root_ / "link", "cache").value(), leaf_.string());
  fs::create_symlink("loop", root_ / "loop");
  EXPECT_THAT(MakeTrustedFolder(root_ / "loop" / "x", "cache").error().message, HasSubstr("loop/x"));
  EXPECT_THAT(MakeTrustedFolder(root_ / std::string(300, 'n'), "cache").error().message, HasSubstr("nnn"));
}

}  // namespace
}  // namespace millrace::engine
