// What the program brings by itself, without any folder of plugins.
#include "handlers/built_in/built_in.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "framework/config/config.h"
#include "tests/integration/handlers/script_server.h"
#include "tests/support/test_certificate.h"
#include "tests/unit/handlers/shipped_handler.h"

namespace millrace::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

class BuiltInTest : public ShippedHandlerTest {
 protected:
  BuiltInTest() {
    const std::string none = folder_ + "/none";
    std::filesystem::create_directory(none);
    auto loaded = PluginSet::Load(none, folder_, built_in::Plugin());
    EXPECT_TRUE(loaded.has_value()) << (loaded ? "" : loaded.error().message);
    if (loaded) plugins_ = *std::move(loaded);
  }
  // With the options that a configuration's alert `a` gives it.
  Outcome Carry(const char* type, const std::string& alert, const std::string& params, bool server = true) {
    const std::string send_mail =
        R"("send_mail":{"options":{"server":")" + mail_.Address() +
        R"(","security":"none","from":"millrace@example.org","subject":"-","body":"-"}})";
    const auto config = ParseConfig(
        "{\"handlers\":{" + (server ? send_mail : "") + "},\"alerts\":{\"a\":" + alert + "}}", "test");
    EXPECT_TRUE(config.has_value()) << (config ? "" : config.error().message);
    return Run(type, config->HandlerFor(type).options, params);
  }
  std::string Hooked() {
    return R"({"kind":"failed","mail":["ops@example.org"],"webhook":"http://)" + http_.Address() + "/200\"}";
  }

  ScriptServer mail_{"smtp_server.py"};
  ScriptServer http_{"http_server.py"};
};

TEST_F(BuiltInTest, AMessageIsPostedToTheAlertsOwnUrl) {
  const Outcome outcome =
      Carry(kWebhookType, Hooked(), R"({"alert":"a","url":"http://127.0.0.1:1/elsewhere","text":"x"})");
  EXPECT_EQ(outcome.kind, OutcomeKind::Done) << outcome.text;
  EXPECT_THAT(http_.NextLine(), HasSubstr(R"("path": "/200")"));
}

TEST_F(BuiltInTest, AMessageIsPostedToAServerOfTheAuthoritiesThatHttpCallTrusts) {
  const TestCertificate certificate;
  ScriptServer server("http_server.py",
                      {"--certificate", certificate.certificate(), "--key", certificate.key()});
  const auto post = [&](const std::string& options) {
    const auto config = ParseConfig(R"({"handlers":{"http_call":{"options":)" + options +
                                        R"(}},"alerts":{"a":{"kind":"failed","webhook":"https://)" +
                                        server.Address() + R"(/200"}}})",
                                    "test");
    EXPECT_TRUE(config.has_value()) << (config ? "" : config.error().message);
    return Run(kWebhookType, config->HandlerFor(kWebhookType).options, R"({"alert":"a","text":"x"})");
  };
  EXPECT_EQ(post("{}").error_class, "certificate");
  const Outcome outcome = post(R"({"ca_file":")" + certificate.certificate() + "\"}");
  EXPECT_EQ(outcome.kind, OutcomeKind::Done) << outcome.text;
  EXPECT_THAT(server.NextLine(), HasSubstr(R"("path": "/200")"));
}

TEST_F(BuiltInTest, AMessageIsMailedToTheAlertsOwnAddress) {
  const std::string params =
      R"({"alert":"a","to":"ops@example.org","subject":"x\r\nBcc: eve@example.org","body":"b {{to}} {{no}}"})";
  const Outcome outcome = Carry(kMailType, Hooked(), params);
  EXPECT_EQ(outcome.kind, OutcomeKind::Done) << outcome.text;
  const std::string mail = mail_.NextLine();
  EXPECT_THAT(mail, HasSubstr(R"("to": ["ops@example.org"])"));
  EXPECT_THAT(mail, Not(HasSubstr(R"(\nBcc:)")));
}

TEST_F(BuiltInTest, NoOtherAddressIsTaken) {
  for (const char* to : {"eve@example.org", "OPS@example.org", ""}) {
    const Outcome outcome = Carry(
        kMailType, Hooked(), R"({"alert":"a","subject":"x","body":"y","to":")" + std::string(to) + "\"}");
    EXPECT_EQ(outcome.error_class, "not_configured") << to;
  }
  EXPECT_EQ(Carry(kWebhookType, Hooked(), R"({"alert":"b"})").error_class, "not_configured");
  EXPECT_EQ(Carry(kWebhookType, Hooked(), "{}").kind, OutcomeKind::Fail);
}

// The address is the operator's, who may mend it: what a task of people's own would fail by is tried again.
TEST_F(BuiltInTest, WhatIsRefusedForGoodIsTriedAgain) {
  const Outcome gone =
      Carry(kWebhookType, R"({"kind":"failed","webhook":"http://)" + http_.Address() + R"(/404"})",
            R"({"alert":"a","text":"x"})");
  EXPECT_EQ(gone.kind, OutcomeKind::Retry) << gone.text;
  EXPECT_EQ(gone.error_class, "http_404");
  const Outcome nobody = Carry(kMailType, R"({"kind":"failed","mail":["nobody@example.org"]})",
                               R"({"alert":"a","to":"nobody@example.org","subject":"x","body":"y"})");
  EXPECT_EQ(nobody.kind, OutcomeKind::Retry) << nobody.text;
  EXPECT_EQ(nobody.error_class, "smtp_550");
}

TEST_F(BuiltInTest, WithoutAServerForMailTheOutcomeSaysWhatToSet) {
  const Outcome outcome =
      Carry(kMailType, Hooked(), R"({"alert":"a","to":"ops@example.org","subject":"x","body":"y"})", false);
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_THAT(outcome.text, HasSubstr("handlers.send_mail.options.server"));
}

TEST_F(BuiltInTest, WithoutOptionsTheyOpenAndSayWhatIsMissing) {
  EXPECT_EQ(Run(kMailType, "{}", R"({"alert":"a","to":"x@y"})").error_class, "not_configured");
  EXPECT_EQ(Run(kWebhookType, "{}", R"({"alert":"a"})").error_class, "not_configured");
}

}  // namespace
}  // namespace millrace::engine
