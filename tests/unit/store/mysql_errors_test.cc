// What the servers' own codes mean to a caller.
#include "framework/store/mysql/errors.h"

#include <gtest/gtest.h>

namespace millrace::engine::mysql {
namespace {

ErrorCode CodeOf(int code, Purpose purpose) { return Translate({code, "as it says"}, purpose, "here").code; }

TEST(MysqlErrorsTest, TlsThatFailsIsRefusedWhenItConnectsAndIsALostConnectionAfterwards) {
  EXPECT_EQ(CodeOf(2026, Purpose::Connect), ErrorCode::Denied);
  EXPECT_NE(Translate({2026, ""}, Purpose::Connect, "").message.find("tls_ca"), std::string::npos);
  EXPECT_EQ(CodeOf(2026, Purpose::Read), ErrorCode::Unavailable);
  EXPECT_EQ(CodeOf(2026, Purpose::Transaction), ErrorCode::Unavailable);
  EXPECT_EQ(CodeOf(2026, Purpose::Write), ErrorCode::Unknown);
  EXPECT_EQ(CodeOf(2026, Purpose::Commit), ErrorCode::Unknown);
  EXPECT_EQ(Translate({2026, ""}, Purpose::Commit, "").message.find("tls_ca"), std::string::npos);
  EXPECT_TRUE(IsGone(2026));
}

TEST(MysqlErrorsTest, AHandshakeThatIsCutSaysNothingOfTheCertificate) {
  for (const char* cut : {"TLS/SSL error: Connection reset by peer (104)", "TLS/SSL error: unexpected eof"}) {
    const Error error = Translate({2026, cut}, Purpose::Connect, "");
    EXPECT_EQ(error.code, ErrorCode::Unavailable) << cut;
    EXPECT_EQ(error.message.find("tls_ca"), std::string::npos) << error.message;
  }
  EXPECT_EQ(Translate({2026, "TLS/SSL error: certificate verify failed"}, Purpose::Connect, "").code,
            ErrorCode::Denied);
}

TEST(MysqlErrorsTest, ARightThatIsMissingIsDeniedAndNoWrongData) {
  for (const int code : {1044, 1045, 1049, 1130, 1142, 1143}) {
    EXPECT_EQ(CodeOf(code, Purpose::Connect), ErrorCode::Denied) << code;
    EXPECT_EQ(CodeOf(code, Purpose::Write), ErrorCode::Denied) << code;
    EXPECT_EQ(CodeOf(code, Purpose::Transaction), ErrorCode::Denied) << code;
  }
  EXPECT_EQ(CodeOf(1406, Purpose::Write), ErrorCode::Invalid) << "a text that is too long";
}

TEST(MysqlErrorsTest, AnAccountThatIsNotLetInIsDeniedAndToldWhatHelps) {
  for (const int code : {1698, 1862, 3118, 4151}) {
    const Error error = Translate({code, ""}, Purpose::Connect, "");
    EXPECT_EQ(error.code, ErrorCode::Denied) << code;
    EXPECT_NE(error.message.find("ALTER USER"), std::string::npos) << error.message;
  }
}

TEST(MysqlErrorsTest, AServerWithoutAConnectionForThisAccountHasOneLater) {
  for (const int code : {1040, 1203, 1226}) {
    EXPECT_EQ(CodeOf(code, Purpose::Connect), ErrorCode::Unavailable) << code;
    EXPECT_TRUE(IsOfThisOneAlone(code)) << code;
  }
  EXPECT_NE(Translate({1226, ""}, Purpose::Connect, "").message.find("MAX_USER_CONNECTIONS"),
            std::string::npos);
}

TEST(MysqlErrorsTest, ARowThatAnotherTableNeedsIsRefusedForWhatItIs) {
  EXPECT_EQ(CodeOf(1451, Purpose::Write), ErrorCode::Invalid);
  EXPECT_EQ(CodeOf(1452, Purpose::Write), ErrorCode::Invalid);
}

TEST(MysqlErrorsTest, AConnectionThatWasClosedForItsSilenceIsLost) {
  EXPECT_EQ(CodeOf(4031, Purpose::Transaction), ErrorCode::Unavailable);
  EXPECT_EQ(CodeOf(4031, Purpose::Write), ErrorCode::Unknown);
  EXPECT_TRUE(IsGone(4031));
  EXPECT_TRUE(MustDrop(4031));
}

TEST(MysqlErrorsTest, AGroupOfServersMayRefuseForNow) {
  // A Galera node that is not ready, and a server that is read-only, have not even begun.
  for (const int code : {1047, 1290}) {
    EXPECT_EQ(CodeOf(code, Purpose::Write), ErrorCode::Unavailable) << code;
    EXPECT_EQ(CodeOf(code, Purpose::Commit), ErrorCode::Unavailable) << code;
  }
  EXPECT_EQ(CodeOf(3100, Purpose::Write), ErrorCode::Unavailable);
  EXPECT_EQ(CodeOf(3101, Purpose::Write), ErrorCode::Conflict) << "another member's change was first";
  EXPECT_EQ(CodeOf(3101, Purpose::Commit), ErrorCode::Conflict);
  EXPECT_TRUE(MustDrop(3101));
}

TEST(MysqlErrorsTest, ACommitThatFailsForReasonsOfItsOwnIsReadBack) {
  for (const int code : {1053, 1180, 1317, 3100, 5000}) {
    EXPECT_EQ(CodeOf(code, Purpose::Commit), ErrorCode::Unknown) << code;
  }
}

}  // namespace
}  // namespace millrace::engine::mysql
