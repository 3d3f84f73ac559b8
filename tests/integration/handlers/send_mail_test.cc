#include <gmock/gmock.h>

#include <chrono>
#include <optional>

#include "tests/integration/handlers/script_server.h"
#include "tests/support/test_certificate.h"
#include "tests/unit/handlers/shipped_handler.h"

namespace millrace::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

class SendMailTest : public ShippedHandlerTest {
 protected:
  Outcome Send(const std::string& params) {
    return Run(
        "send_mail",
        R"({"server":")" + server_.Address() +
            R"(","security":"none","from":"shop@example.org","subject":"{{subject}}","body":"Hello {{name}}"})",
        params);
  }
  ScriptServer server_{"smtp_server.py"};
};

TEST_F(SendMailTest, SendsTheFilledTemplates) {
  const Outcome outcome = Send(R"({"to":"ann@example.org","subject":"Your order","name":"Zoë"})");
  EXPECT_EQ(outcome.kind, OutcomeKind::Done) << outcome.text;
  EXPECT_EQ(outcome.text, "sent to ann@example.org");
  const std::string mail = server_.NextLine();
  EXPECT_THAT(mail, HasSubstr(R"("from": "shop@example.org", "to": ["ann@example.org"])"));
  EXPECT_THAT(mail, HasSubstr(R"(Subject: Your order\r\n)"));
  EXPECT_THAT(mail, HasSubstr(R"(Message-ID: <main.tasks.1)"));
  EXPECT_THAT(mail, HasSubstr("SGVsbG8gWm/Dqw=="));
}

TEST_F(SendMailTest, NumbersAreWrittenAsPeopleWriteThem) {
  const auto subject = [&](const std::string& number) {
    EXPECT_EQ(Send(R"({"to":"ann@example.org","name":"b","subject":)" + number + "}").kind,
              OutcomeKind::Done);
    const std::string mail = server_.NextLine();
    const std::size_t begin = mail.find("Subject: ") + 9;
    return mail.substr(begin, mail.find(R"(\r\n)", begin) - begin);
  };
  EXPECT_EQ(subject("200000.0"), "200000");
  EXPECT_EQ(subject("0.0001"), "0.0001");
  EXPECT_EQ(subject("19.90"), "19.9");
  EXPECT_EQ(subject("12345678901"), "12345678901");
  EXPECT_EQ(subject("1e20"), "1e+20");
  EXPECT_EQ(subject("-5e-324").size(), 327u);
}

// As where its server is configured for alerts alone, or each task has its own words.
TEST_F(SendMailTest, WithoutTemplatesTheTaskHasThem) {
  const Outcome outcome = Run(
      "send_mail", R"({"server":")" + server_.Address() + R"(","security":"none","from":"shop@example.org"})",
      R"({"to":"ann@example.org","subject":"Yours","body":"All of it"})");
  EXPECT_EQ(outcome.kind, OutcomeKind::Done) << outcome.text;
}

TEST_F(SendMailTest, AParameterCannotAddAHeader) {
  EXPECT_EQ(Send(R"({"to":"ann@example.org","subject":"a\r\nBcc: eve@example.org\r\n\r\nx","name":1})").kind,
            OutcomeKind::Done);
  const std::string mail = server_.NextLine();
  EXPECT_THAT(mail, HasSubstr(R"("to": ["ann@example.org"])"));
  EXPECT_THAT(mail, HasSubstr("Subject: a  Bcc: eve@example.org"));
  EXPECT_THAT(mail, Not(HasSubstr(R"(\nBcc:)")));
}

TEST_F(SendMailTest, AParameterCannotAddARecipient) {
  for (const char* to : {"ann@example.org,eve@example.org", "ann@example.org\\r\\nBcc: eve@example.org",
                         "ann", "<ann@example.org>", "a b@example.org", ""}) {
    const Outcome outcome = Send(R"({"subject":"a","name":"b","to":")" + std::string(to) + "\"}");
    EXPECT_EQ(outcome.kind, OutcomeKind::Fail) << to;
    EXPECT_EQ(outcome.error_class, "bad_params") << to;
  }
}

TEST_F(SendMailTest, AMissingParameterFailsAndSaysWhich) {
  EXPECT_EQ(Send(R"({"to":"ann@example.org","subject":"x"})").text, "'name' is missing");
}

TEST_F(SendMailTest, ASubjectBeyondAsciiIsEncoded) {
  EXPECT_EQ(Send(R"({"to":"ann@example.org","subject":"Größe","name":"b"})").kind, OutcomeKind::Done);
  EXPECT_THAT(server_.NextLine(), HasSubstr("Subject: =?UTF-8?B?R3LDtsOfZQ==?="));
}

TEST_F(SendMailTest, RepliesBecomeOutcomes) {
  const Outcome nobody = Send(R"({"to":"nobody@example.org","subject":"x","name":"b"})");
  EXPECT_EQ(nobody.kind, OutcomeKind::Fail);
  EXPECT_EQ(nobody.error_class, "smtp_550");
  const Outcome busy = Send(R"({"to":"busy@example.org","subject":"x","name":"b"})");
  EXPECT_EQ(busy.kind, OutcomeKind::Retry);
  EXPECT_EQ(busy.error_class, "smtp_451");
  EXPECT_EQ(Send(R"({"to":"login@example.org","subject":"x","name":"b"})").kind, OutcomeKind::Retry);
  const Outcome spam = Send(R"({"to":"ann@example.org","subject":"spam","name":"b"})");
  EXPECT_EQ(spam.kind, OutcomeKind::Fail) << spam.text;
  EXPECT_EQ(spam.error_class, "smtp_554");
}

// It has the mail: nothing that comes after may have it sent again, or keep the thread.
TEST_F(SendMailTest, AServerThatTakesTheMailAndThenSaysNothingHasTakenIt) {
  ScriptServer silent("smtp_server.py", {"--silent-after-mail"});
  const auto before = std::chrono::steady_clock::now();
  const Outcome outcome =
      Run("send_mail",
          R"({"server":")" + silent.Address() +
              R"(","security":"none","from":"shop@example.org","subject":"x","body":"y"})",
          R"({"to":"ann@example.org"})");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
  EXPECT_EQ(outcome.kind, OutcomeKind::Done) << outcome.text;
  EXPECT_THAT(silent.NextLine(), HasSubstr(R"("to": ["ann@example.org"])"));
}

TEST_F(SendMailTest, AServerThatIsAwayIsRetried) {
  const Outcome outcome =
      Run("send_mail",
          R"({"server":"127.0.0.1:1","security":"none","from":"a@example.org","subject":"x","body":"y"})",
          R"({"to":"ann@example.org"})");
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_EQ(outcome.error_class, "connection");
}

TEST_F(SendMailTest, EncryptionIsNeverDroppedSilently) {
  const Outcome outcome =
      Run("send_mail",
          R"({"server":")" + server_.Address() + R"(","from":"a@example.org","subject":"x","body":"y"})",
          R"({"to":"ann@example.org"})");
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
}

// A server that takes mails over TLS alone, and from the user `shop` alone.
class SecureSendMailTest : public ShippedHandlerTest {
 protected:
  Outcome Send(const std::string& security, const std::string& password, bool with_authority = true) {
    server_.emplace("smtp_server.py", std::vector<std::string>{
                                          "--security", security, "--certificate", certificate_.certificate(),
                                          "--key", certificate_.key(), "--login", "shop:a secret"});
    const std::string authority =
        with_authority ? R"(,"ca_file":")" + certificate_.certificate() + "\"" : std::string();
    return Run("send_mail",
               R"({"server":")" + server_->Address() + R"(","security":")" + security + "\"" + authority +
                   R"(,"user":"shop","from":"shop@example.org","subject":"x","body":"y"})",
               R"({"to":"ann@example.org"})", {{"password", password}});
  }

  const TestCertificate certificate_;
  std::optional<ScriptServer> server_;
};

TEST_F(SecureSendMailTest, SendsEncryptedWithItsLogin) {
  for (const char* security : {"starttls", "tls"}) {
    const Outcome outcome = Send(security, "a secret");
    EXPECT_EQ(outcome.kind, OutcomeKind::Done) << security << ": " << outcome.text;
    if (outcome.kind != OutcomeKind::Done) continue;
    EXPECT_THAT(server_->NextLine(), HasSubstr(R"("authenticated": true, "encrypted": true)")) << security;
  }
}

TEST_F(SecureSendMailTest, AWrongPasswordIsToldWithoutIt) {
  for (const char* security : {"starttls", "tls"}) {
    const Outcome outcome = Send(security, "a wrong one");
    EXPECT_EQ(outcome.kind, OutcomeKind::Retry) << "the operator may mend it";
    EXPECT_EQ(outcome.error_class, "smtp_535") << outcome.text;
    EXPECT_THAT(outcome.text, Not(HasSubstr("a wrong one")));
  }
}

TEST_F(SecureSendMailTest, AServerOfAnUnknownAuthorityIsToldNothing) {
  for (const char* security : {"starttls", "tls"}) {
    const Outcome outcome = Send(security, "a secret", false);
    EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
    EXPECT_EQ(outcome.error_class, "certificate") << outcome.text;
    EXPECT_THAT(outcome.text, HasSubstr("ca_file"));
  }
}

TEST_F(SendMailTest, OptionsThatCannotWorkAreRefused) {
  EXPECT_THAT(Open("send_mail", "{}").error().message, HasSubstr("'server' is missing"));
  EXPECT_THAT(Open("send_mail", R"({"server":"a","security":"ssl"})").error().message,
              HasSubstr("starttls, tls or none"));
  EXPECT_THAT(
      Open("send_mail", R"({"server":"a","from":"x@y","subject":"","body":"","user":"u"})").error().message,
      HasSubstr("secret 'password' is missing"));
}

}  // namespace
}  // namespace millrace::engine
