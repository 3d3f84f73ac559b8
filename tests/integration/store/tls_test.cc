// A store URL with tls_ca: verified TLS, or nothing at all.
#include <gmock/gmock.h>

#include <fstream>

#include "framework/store/mysql/store.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/test_certificate.h"

namespace millrace::engine {
namespace {

using testing::HasSubstr;

std::vector<std::string> ServerOptions(const TestCertificate& certificate) {
  return {"--ssl-cert=" + certificate.certificate(), "--ssl-key=" + certificate.key()};
}

class StoreTls : public testing::Test {
 protected:
  // By the text that an operator writes.
  static std::unique_ptr<Store> Open(const PrivateMariadb& server, const std::string& tls_ca) {
    auto url = ParseStoreUrl("mysql://" + server.user() + "@127.0.0.1:" + std::to_string(server.port()) +
                             "/mysql?tls_ca=" + tls_ca);
    EXPECT_TRUE(url) << url.error().message;
    auto store = mysql::OpenStore(*url, {.password_file = server.password_file()});
    EXPECT_TRUE(store) << store.error().message;
    return std::move(*store);
  }
  // Why it is refused: with its name, as wrong input, and not as a server that is away.
  static std::string Refusal(const PrivateMariadb& server, const std::string& tls_ca) {
    const Status answer = Open(server, tls_ca)->Ping();
    EXPECT_FALSE(answer);
    if (answer) return {};
    EXPECT_EQ(answer.error().code, ErrorCode::Invalid) << answer.error().message;
    EXPECT_THAT(answer.error().message, HasSubstr("127.0.0.1:" + std::to_string(server.port())));
    EXPECT_THAT(answer.error().message, HasSubstr("tls_ca"));
    return answer.error().message;
  }

  static const TestCertificate& Certificate() {
    static const TestCertificate certificate;
    return certificate;
  }
  static const PrivateMariadb& Server() {
    static const PrivateMariadb server(ServerOptions(Certificate()));
    return server;
  }
};

TEST_F(StoreTls, AServerOfTheAuthorityIsSpokenToEncrypted) {
  const auto store = Open(Server(), Certificate().certificate());
  const Status answer = store->Ping();
  ASSERT_TRUE(answer) << answer.error().message;
  const auto transaction = store->OpenTransaction(std::chrono::seconds(5));
  const auto cipher = transaction->Execute("SHOW STATUS LIKE 'Ssl_cipher'", {});
  ASSERT_TRUE(cipher) << cipher.error().message;
  EXPECT_NE(cipher->rows.at(0).at(1), "");
}

TEST_F(StoreTls, AServerOfAnotherAuthorityIsRefused) {
  const TestCertificate stranger;
  EXPECT_THAT(Refusal(Server(), stranger.certificate()), HasSubstr("certificate"));
}

TEST_F(StoreTls, ACertificateForAnotherHostIsRefused) {
  const TestCertificate elsewhere("DNS:elsewhere.example.org");
  const PrivateMariadb server(ServerOptions(elsewhere));
  EXPECT_THAT(Refusal(server, elsewhere.certificate()), HasSubstr("certificate"));
}

TEST_F(StoreTls, AServerWithoutTlsIsRefused) {
  const PrivateMariadb plain;
  EXPECT_THAT(Refusal(plain, Certificate().certificate()), HasSubstr("TLS"));
}

TEST_F(StoreTls, AnAuthorityThatCannotBeReadIsRefusedAndNamed) {
  EXPECT_THAT(Refusal(Server(), "/nowhere/ca.pem"), HasSubstr("/nowhere/ca.pem"));
  const TestCertificate rubbish;
  std::ofstream(rubbish.certificate()) << "rubbish\n";
  EXPECT_THAT(Refusal(Server(), rubbish.certificate()), HasSubstr(rubbish.certificate()));
}

}  // namespace
}  // namespace millrace::engine
