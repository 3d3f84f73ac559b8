#include "framework/store/url.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace millrace::engine {
namespace {

TEST(StoreUrlTest, ReadsBothKinds) {
  const StoreUrl file = ParseStoreUrl("sqlite:points.db").value();
  EXPECT_EQ(file.kind, StoreUrl::Kind::Sqlite);
  EXPECT_EQ(file.path, "points.db");
  const StoreUrl server = ParseStoreUrl("mysql://a%40b@db:3307/points?tls_ca=/etc/ca.pem").value();
  EXPECT_EQ(server.user, "a@b");
  EXPECT_EQ(server.host, "db");
  EXPECT_EQ(server.port, 3307);
  EXPECT_EQ(server.database, "points");
  EXPECT_EQ(server.tls_ca, "/etc/ca.pem");
  EXPECT_EQ(ParseStoreUrl("mysql://u@db/points")->port, 3306);
}

TEST(StoreUrlTest, RefusesWhatIsIncomplete) {
  for (const char* text : {"", "points.db", "postgres://u@h/d", "sqlite:", "mysql://u@h", "mysql://u@h/",
                           "mysql://h/d", "mysql://u@h:0/d", "mysql://u@h:x/d", "mysql://u@h:70000/d",
                           "mysql://u%4@h/d", "mysql://u@h/d?ssl=1", "mysql://u@h/d?tls_ca="}) {
    const auto url = ParseStoreUrl(text);
    ASSERT_FALSE(url) << text;
    EXPECT_EQ(url.error().code, ErrorCode::Invalid);
  }
}

TEST(StoreUrlTest, APasswordIsRefusedAndNotRepeated) {
  const auto url = ParseStoreUrl("mysql://u:hunter2@h/d");
  ASSERT_FALSE(url);
  EXPECT_EQ(url.error().message.find("hunter2"), std::string::npos);
  EXPECT_NE(url.error().message.find("MILLRACE_PASSWORD_FILE"), std::string::npos);
}

class PasswordFileTest : public ::testing::Test {
 protected:
  PasswordFileTest() {
    char pattern[] = "/tmp/millrace-password-XXXXXX";
    folder_ = mkdtemp(pattern);
    file_ = folder_ + "/password";
    std::ofstream(file_) << "secret\n";
  }
  ~PasswordFileTest() override {
    unsetenv("CREDENTIALS_DIRECTORY");
    unlink(file_.c_str());
    rmdir(folder_.c_str());
  }
  bool IsRead(mode_t mode) const {
    chmod(file_.c_str(), mode);
    const auto password = ReadPasswordFile(file_);
    return password && *password == "secret";
  }

  std::string folder_;
  std::string file_;
};

TEST_F(PasswordFileTest, IsItsOwnersAlone) {
  EXPECT_TRUE(IsRead(0400));
  EXPECT_TRUE(IsRead(0600));
  EXPECT_FALSE(IsRead(0640));
  EXPECT_FALSE(IsRead(0604));
  EXPECT_FALSE(IsRead(0620));
}

TEST_F(PasswordFileTest, ACredentialOfTheServiceManagerMayShowTheMaskOfAnAcl) {
  setenv("CREDENTIALS_DIRECTORY", folder_.c_str(), 1);
  EXPECT_TRUE(IsRead(0440));
  EXPECT_FALSE(IsRead(0444));
  setenv("CREDENTIALS_DIRECTORY", (folder_ + "/elsewhere").c_str(), 1);
  EXPECT_FALSE(IsRead(0440));
}

}  // namespace
}  // namespace millrace::engine
