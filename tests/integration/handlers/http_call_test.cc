#include <dlfcn.h>
#include <gmock/gmock.h>
#include <netdb.h>

#include <chrono>
#include <semaphore>

#include "tests/integration/handlers/script_server.h"
#include "tests/support/test_certificate.h"
#include "tests/unit/handlers/shipped_handler.h"

namespace {
constexpr std::string_view kNameThatHangs = "hangs.example";
std::counting_semaphore<> answers(0);  // of the name server, for that name
std::counting_semaphore<> heard(0);    // those that a look-up has taken
}  // namespace

// In place of libc's, for libcurl too.
extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* node, const char* service,
                                                                  const addrinfo* hints, addrinfo** found) {
  static const auto real = reinterpret_cast<decltype(&getaddrinfo)>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  if (node == nullptr || node != kNameThatHangs) return real(node, service, hints, found);
  if (answers.try_acquire_for(std::chrono::seconds(10))) heard.release();
  return EAI_AGAIN;
}

namespace millrace::engine {
namespace {

using testing::HasSubstr;
using testing::Not;

class HttpCallTest : public ShippedHandlerTest {
 protected:
  Outcome Post(const std::string& path, const std::string& more = "") {
    return Run("http_call", R"({"url":"http://)" + server_.Address() + path + "\"" + more + "}",
               R"({"a": 1, "b":"é"})", {{"bearer_token", "t0ken"}});
  }
  ScriptServer server_{"http_server.py"};
};

TEST_F(HttpCallTest, PostsTheParametersWithTheIdempotencyKey) {
  const Outcome outcome = Post("/200", R"(,"headers":{"X-Shop":"7"})");
  EXPECT_EQ(outcome.kind, OutcomeKind::Done);
  EXPECT_EQ(outcome.text, "200: answer");
  const std::string request = server_.NextLine();
  EXPECT_THAT(request, HasSubstr(R"("body": "{\"a\": 1, \"b\":\"\u00e9\"}")"));
  EXPECT_THAT(request, HasSubstr(R"("Idempotency-Key": "main/tasks/1)"));
  EXPECT_THAT(request, HasSubstr(R"("Content-Type": "application/json")"));
  EXPECT_THAT(request, HasSubstr(R"("X-Shop": "7")"));
  EXPECT_THAT(request, HasSubstr(R"("Authorization": "Bearer t0ken")"));
}

TEST_F(HttpCallTest, AContentTypeOfOnesOwnIsTheOnlyOne) {
  EXPECT_EQ(Post("/200", R"(,"headers":{"content-type":"application/cloudevents+json"})").text,
            "200: answer");
  const std::string request = server_.NextLine();
  EXPECT_THAT(request, HasSubstr(R"("content-type": "application/cloudevents+json")"));
  EXPECT_THAT(request, Not(HasSubstr("application/json")));
}

TEST_F(HttpCallTest, ABinaryAnswerIsMadeHarmless) { EXPECT_EQ(Post("/201").text, R"(201: hello\x00\xff)"); }

TEST_F(HttpCallTest, StatusesBecomeOutcomes) {
  for (const char* passing : {"/408", "/425", "/500", "/503"}) {
    const Outcome outcome = Post(passing);
    EXPECT_EQ(outcome.kind, OutcomeKind::Retry) << passing;
    EXPECT_FALSE(outcome.delay) << passing;
    EXPECT_EQ(outcome.error_class, "http_" + std::string(passing + 1));
  }
  for (const char* lasting : {"/302", "/400", "/404", "/422"}) {
    EXPECT_EQ(Post(lasting).kind, OutcomeKind::Fail) << lasting;
  }
}

TEST_F(HttpCallTest, ARefusedLoginIsRetriedByClassSinceATokenMayBeRenewed) {
  for (const char* refused : {"/401", "/403", "/407"}) {
    const Outcome outcome = Post(refused);
    EXPECT_EQ(outcome.kind, OutcomeKind::Retry) << refused;
    EXPECT_EQ(outcome.error_class, "http_" + std::string(refused + 1));
  }
}

TEST_F(HttpCallTest, AConnectionIsKeptFromOneCallToTheNext) {
  const auto handler = Open("http_call", R"({"url":"http://)" + server_.Address() + "/200\"}");
  ASSERT_TRUE(handler) << handler.error().message;
  const auto connection = [&] {
    const std::vector<Task> tasks = {SomeTask("http_call", "{}")};
    EXPECT_EQ((*handler)->Run("main", PointersTo(tasks), context_).at(0).text, "200: answer");
    const std::string request = server_.NextLine();
    return request.substr(request.find("\"connection\""));
  };
  const std::string first = connection();
  EXPECT_EQ(connection(), first);
  EXPECT_EQ(connection(), first);
}

TEST_F(HttpCallTest, AConnectionThatTheServerHasClosedMeanwhileIsMadeAnew) {
  const auto handler = Open("http_call", R"({"url":"http://)" + server_.Address() + "/203\"}");
  ASSERT_TRUE(handler) << handler.error().message;
  const std::vector<Task> tasks = {SomeTask("http_call", "{}")};
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ((*handler)->Run("main", PointersTo(tasks), context_).at(0).kind, OutcomeKind::Done) << i;
}

TEST_F(HttpCallTest, RetryAfterIsHonoured) {
  const Outcome outcome = Post("/429");
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_EQ(outcome.delay, std::chrono::seconds(7));
}

// At once would be a counted failure with no pause before the next.
TEST_F(HttpCallTest, ARetryAfterThatIsOverIsLeftToTheLadder) {
  for (const char* over : {"/502", "/504"}) {
    const Outcome outcome = Post(over);
    EXPECT_EQ(outcome.kind, OutcomeKind::Retry) << over;
    EXPECT_FALSE(outcome.delay) << over;
  }
}

TEST_F(HttpCallTest, ABrokenConnectionIsRetried) {
  EXPECT_EQ(Post("/hangup").error_class, "connection");
  const Outcome nobody = Run("http_call", R"({"url":"http://127.0.0.1:1/"})", "{}");
  EXPECT_EQ(nobody.kind, OutcomeKind::Retry);
  EXPECT_EQ(nobody.error_class, "connection");
}

TEST_F(HttpCallTest, TheTimeLeftLimitsTheCall) {
  context_.time_left = std::chrono::milliseconds(100);
  const Outcome outcome = Post("/slow");
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_EQ(outcome.error_class, "timeout");
}

TEST_F(HttpCallTest, AStopEndsTheCall) {
  context_.stop = true;
  EXPECT_EQ(Post("/slow").error_class, "stopped");
}

TEST_F(HttpCallTest, ALookUpThatHangsIsEndedAsACallIs) {
  const auto call = [&] {
    const auto before = std::chrono::steady_clock::now();
    const Outcome outcome = Run("http_call", R"({"url":"http://hangs.example/","timeout_ms":200})", "{}");
    EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(5));
    answers.release();  // to this look-up, and not to the next
    EXPECT_TRUE(heard.try_acquire_for(std::chrono::seconds(10)));
    return outcome.error_class;
  };
  EXPECT_EQ(call(), "timeout");
  context_.stop = true;
  EXPECT_EQ(call(), "stopped");
}

// A server that speaks TLS alone, with a certificate for its address.
class SecureHttpCallTest : public ShippedHandlerTest {
 protected:
  Outcome Post(const ScriptServer& server, const std::string& authority = "") {
    const std::string ca_file = authority.empty() ? "" : R"(,"ca_file":")" + authority + "\"";
    return Run("http_call", R"({"url":"https://)" + server.Address() + "/200\"" + ca_file + "}",
               R"({"a": 1})", {{"bearer_token", "t0ken"}});
  }
  static std::vector<std::string> Identity(const TestCertificate& certificate) {
    return {"--certificate", certificate.certificate(), "--key", certificate.key()};
  }
  // Whether anything of a call reached the server.
  static testing::AssertionResult WasTold(ScriptServer& server) {
    server.Stop();
    const std::string request = server.NextLine();
    return request.empty() ? testing::AssertionFailure() : testing::AssertionSuccess() << request;
  }

  const TestCertificate certificate_;
  ScriptServer server_{"http_server.py", Identity(certificate_)};
};

TEST_F(SecureHttpCallTest, PostsEncryptedToAServerOfATrustedAuthority) {
  const Outcome outcome = Post(server_, certificate_.certificate());
  EXPECT_EQ(outcome.kind, OutcomeKind::Done) << outcome.text;
  EXPECT_EQ(outcome.text, "200: answer");
  EXPECT_THAT(server_.NextLine(), HasSubstr(R"("Authorization": "Bearer t0ken")"));
}

TEST_F(SecureHttpCallTest, AServerOfAnUnknownAuthorityIsToldNothing) {
  const Outcome outcome = Post(server_);
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_EQ(outcome.error_class, "certificate") << outcome.text;
  EXPECT_THAT(outcome.text, HasSubstr("'ca_file' names the authorities to trust"));
  EXPECT_FALSE(WasTold(server_));
}

TEST_F(SecureHttpCallTest, AServerWithACertificateForAnotherNameIsToldNothing) {
  const TestCertificate elsewhere("DNS:elsewhere.example");
  ScriptServer server("http_server.py", Identity(elsewhere));
  const Outcome outcome = Post(server, elsewhere.certificate());
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_EQ(outcome.error_class, "certificate") << outcome.text;
  EXPECT_FALSE(WasTold(server));
}

TEST_F(SecureHttpCallTest, AFileOfAuthoritiesThatIsNotThereIsTold) {
  const Outcome outcome = Post(server_, certificate_.certificate() + ".not");
  EXPECT_EQ(outcome.kind, OutcomeKind::Retry);
  EXPECT_EQ(outcome.error_class, "certificate") << outcome.text;
}

TEST_F(HttpCallTest, OptionsThatCannotWorkAreRefused) {
  EXPECT_THAT(Open("http_call", "{}").error().message, HasSubstr("'url' is missing"));
  EXPECT_THAT(Open("http_call", R"({"url":"file:///etc/passwd"})").error().message, HasSubstr("http://"));
  EXPECT_THAT(Open("http_call", R"({"url":"http://a/","timeout_ms":0})").error().message,
              HasSubstr("'timeout_ms' must be 1 to 86400000, is 0"));
  EXPECT_THAT(Open("http_call", R"({"url":"http://a/","headers":{"idempotency-key":"x"}})").error().message,
              HasSubstr("each task has its own"));
  const auto broken = Open("http_call", R"({"url":"http://a/"})", {{"bearer_token", "s3cret\r\nX: y"}});
  ASSERT_FALSE(broken.has_value());
  EXPECT_THAT(broken.error().message, Not(HasSubstr("s3cret")));
}

}  // namespace
}  // namespace millrace::engine
