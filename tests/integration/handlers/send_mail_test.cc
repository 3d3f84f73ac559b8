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
  // A mail without templates, by a server of its own and with `more` options.
  Outcome SendBy(const ScriptServer& server, const std::string& to, const std::string& more = "") {
    return Run("send_mail",
               R"({"server":")" + server.Address() +
                   R"(","security":"none","from":"shop@example.org","subject":"x","body":"y")" + more + "}",
               R"({"to":")" + to + "\"}", {{"password", "a secret"}});
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

// RFC 2045 wants it of a text, before it is encoded.
TEST_F(SendMailTest, ALineOfTheBodyEndsWithCrLf) {
  for (const char* name : {R"(a\nb)", R"(a\r\nb)"}) {
    const std::string params =
        R"({"to":"ann@example.org","subject":"x","name":")" + std::string(name) + "\"}";
    EXPECT_EQ(Send(params).kind, OutcomeKind::Done);
    EXPECT_THAT(server_.NextLine(), HasSubstr(R"(\r\n\r\nSGVsbG8gYQ0KYg==)")) << name;
  }
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

// It may be overloaded, or not know this worker's address: of the mail it has not heard.
TEST_F(SendMailTest, AServerThatTurnsEverybodyAwayIsRetried) {
  for (const std::string& status : std::vector<std::string>{"521", "554"}) {
    const ScriptServer closed("smtp_server.py", {"--greeting", status + " no service here"});
    const Outcome outcome = SendBy(closed, "ann@example.org");
    EXPECT_EQ(outcome.kind, OutcomeKind::Retry) << outcome.text;
    EXPECT_EQ(outcome.error_class, "smtp_" + status);
  }
}

// It has the mail: nothing that comes after may have it sent again, or keep the thread.
TEST_F(SendMailTest, AServerThatTakesTheMailAndThenSaysNothingHasTakenIt) {
  ScriptServer silent("smtp_server.py", {"--silent-at-quit"});
  const auto before = std::chrono::steady_clock::now();
  const Outcome outcome = SendBy(silent, "ann@example.org");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(20));
  EXPECT_EQ(outcome.kind, OutcomeKind::Done) << outcome.text;
  EXPECT_THAT(silent.NextLine(), HasSubstr(R"("to": ["ann@example.org"])"));
}

TEST_F(SendMailTest, AServerThatRefusesTheMailAndThenSaysNothingKeepsNoThread) {
  const ScriptServer silent("smtp_server.py", {"--silent-at-quit"});
  const auto before = std::chrono::steady_clock::now();
  const Outcome outcome = SendBy(silent, "nobody@example.org", R"(,"timeout_ms":5000)");
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(30));
  EXPECT_EQ(outcome.kind, OutcomeKind::Fail) << outcome.text;
  EXPECT_EQ(outcome.error_class, "smtp_550");
}

// Whom it does not know it may refuse what it takes from the user.
TEST_F(SendMailTest, ARefusalWithoutTheLoginIsNotFinal) {
  const std::string user = R"(,"user":"shop")";
  const Outcome nobody = SendBy(server_, "nobody@example.org", user);
  EXPECT_EQ(nobody.kind, OutcomeKind::Retry);
  EXPECT_EQ(nobody.error_class, "smtp_550");
  EXPECT_THAT(nobody.text, HasSubstr("; the server offers no login: look at 'security' and the port"));
  const Outcome ann = SendBy(server_, "ann@example.org", user);
  EXPECT_EQ(ann.kind, OutcomeKind::Done) << ann.text;
}

TEST_F(SendMailTest, ALoginOfNoKnownKindIsToldAsWhatItIs) {
  const ScriptServer strange("smtp_server.py", {"--strange-login"});
  const Outcome outcome = SendBy(strange, "ann@example.org", R"(,"user":"shop")");
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_EQ(outcome.error_class, "connection");
  EXPECT_THAT(outcome.text, HasSubstr("the server offers no login that is known here: look at 'security'"));
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
  EXPECT_EQ(outcome.error_class, "connection");
  EXPECT_THAT(outcome.text, HasSubstr("the server offers no encryption: look at 'security' and the port"));
}

// A server that takes mails over TLS alone, and from the user `shop` alone.
class SecureSendMailTest : public ShippedHandlerTest {
 protected:
  Outcome Send(const std::string& security, const std::string& password, bool with_authority = true,
               const std::string& to = "ann@example.org") {
    server_.emplace("smtp_server.py", std::vector<std::string>{
                                          "--security", security, "--certificate", certificate_.certificate(),
                                          "--key", certificate_.key(), "--login", "shop:a secret"});
    const std::string authority =
        with_authority ? R"(,"ca_file":")" + certificate_.certificate() + "\"" : std::string();
    return Run("send_mail",
               R"({"server":")" + server_->Address() + R"(","security":")" + security + "\"" + authority +
                   R"(,"user":"shop","from":"shop@example.org","subject":"x","body":"y"})",
               R"({"to":")" + to + "\"}", {{"password", password}});
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

TEST_F(SecureSendMailTest, ARefusalAfterTheLoginIsFinal) {
  for (const char* security : {"starttls", "tls"}) {
    const Outcome outcome = Send(security, "a secret", true, "nobody@example.org");
    EXPECT_EQ(outcome.kind, OutcomeKind::Fail) << security << ": " << outcome.text;
    EXPECT_EQ(outcome.error_class, "smtp_550");
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

// Else every task would fail for good by it.
TEST_F(SendMailTest, ATemplateThatIsNotClosedIsRefused) {
  for (const std::string& option : std::vector<std::string>{"to", "subject", "body"}) {
    for (const std::string& broken : std::vector<std::string>{"Dear {{name", "Dear {{name of {{town}}"}) {
      const auto opened =
          Open("send_mail", R"({"server":"a","from":"x@y",")" + option + R"(":")" + broken + "\"}");
      ASSERT_FALSE(opened.has_value()) << option << ": " << broken;
      EXPECT_THAT(opened.error().message, HasSubstr("'" + option + "': a '{{' of a template is not closed"));
    }
  }
}

}  // namespace
}  // namespace millrace::engine
