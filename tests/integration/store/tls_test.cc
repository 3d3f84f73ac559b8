// A store URL with tls_ca: verified TLS, or nothing at all; and what a connection means that is cut under it.
#include <gmock/gmock.h>

#include <fstream>
#include <thread>

#include "framework/store/mysql/session.h"
#include "framework/store/mysql/store.h"
#include "tests/integration/store/store_faults.h"
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
  // Why it is refused: with its name, as what a person has to mend, and not as a server that is away.
  static std::string Refusal(const PrivateMariadb& server, const std::string& tls_ca) {
    const Status answer = Open(server, tls_ca)->Ping();
    EXPECT_FALSE(answer);
    if (answer) return {};
    EXPECT_EQ(answer.error().code, ErrorCode::Denied) << answer.error().message;
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

// The client library has one word, 2026, for a certificate that is refused and for a connection that is gone.
class CutTls : public StoreFaults, public testing::WithParamInterface<const char*> {
 protected:
  CutTls() : StoreFaults(Verified()) {
    options_.password_file = database_.password_file();
    options_.io_timeout = std::chrono::seconds(3);
    store_ = mysql::OpenStore(database_.url(), options_).value();
    sql_->Ask("CREATE TABLE points (id INT PRIMARY KEY, points INT NOT NULL)");
    sql_->Ask("INSERT INTO points VALUES (1,10)");
  }
  ~CutTls() override { Mend(); }

  static const TestCertificate& Certificate() {
    static const TestCertificate certificate;
    return certificate;
  }
  static PrivateMariadb& Server() {
    static PrivateMariadb server(ServerOptions(Certificate()));
    return server;
  }
  static TestServer Verified() {
    TestServer server = ServerOf(Server());
    server.url.tls_ca = Certificate().certificate();
    return server;
  }

  // The one that holds the lock comes last: what waits for it would get further first.
  void Cut() {
    const std::string how = GetParam();
    if (how == "server killed") return Server().Kill();
    if (how == "server silent") return Server().Pause();
    const std::string holder = std::to_string(other_ ? other_->id() : 0);
    const auto list = sql_->Run(
        "SELECT id FROM information_schema.PROCESSLIST WHERE DB=DATABASE() AND id<>CONNECTION_ID() "
        "ORDER BY id=" +
        holder);
    ASSERT_TRUE(list) << list.error().message;
    for (const auto& row : list->rows) (void)sql_->Run("KILL CONNECTION " + *row[0]);
  }
  void Mend() {
    other_.reset();
    if (Server().pid() == -1) Server().Start();
    Server().Resume();
    sql_ = std::make_unique<SqlConnection>(database_.url(), database_.password_file());
  }
  // Cut while it waits for a lock that `sql` takes.
  template <class Work>
  auto CutUnder(const std::string& sql, Work work) {
    other_ = std::make_unique<SqlConnection>(database_.url(), database_.password_file());
    other_->Ask("BEGIN");
    (void)other_->Run(sql);
    decltype(work()) result;
    std::thread working([&] { result = work(); });
    WaitForLockWait();
    Cut();
    working.join();
    Mend();
    return result;
  }

  StoreOptions options_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<SqlConnection> other_;
};

TEST_P(CutTls, ASettleThatIsCutSaysNothingOfItsRow) {
  const auto tasks = store_->OpenTasks();
  const auto batch = Succeeded(Claim(*tasks, Add(1)));
  const auto cut =
      CutUnder("SELECT id FROM tasks WHERE id=" + std::to_string(batch[0].key.id) + " FOR UPDATE",
               [&] { return tasks->Settle("w.1", batch); });
  ASSERT_FALSE(cut) << "a verdict on a row that nobody has looked at: " << cut->errors[0];
  EXPECT_EQ(cut.error().code, ErrorCode::Unavailable) << cut.error().message;
  const auto settled = tasks->Settle("w.1", batch);
  ASSERT_TRUE(settled) << settled.error().message;
  EXPECT_EQ(settled->verdicts[0], SettleVerdict::Settled);
}

TEST_P(CutTls, AHandlersStatementThatIsCutIsLostAndNotItsFault) {
  const auto tasks = store_->OpenTasks();
  const auto batch = Succeeded(Claim(*tasks, Add(1)));
  const auto transaction = store_->OpenTransaction(std::chrono::seconds(5));
  const auto cut = CutUnder("SELECT id FROM points WHERE id=1 FOR UPDATE", [&] {
    return transaction->Execute("UPDATE points SET points=points+1 WHERE id=1", {});
  });
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, ErrorCode::Unavailable) << cut.error().message;
  EXPECT_EQ(transaction->state(), TransactionState::Lost);
  transaction->Rollback();
  ASSERT_TRUE(transaction->Execute("UPDATE points SET points=points+1 WHERE id=1", {}));
  EXPECT_EQ(transaction->Commit("w.1", batch).verdict, CommitVerdict::Committed);
  EXPECT_EQ(sql_->Ask("SELECT points FROM points"), "11");
}

TEST_P(CutTls, WhatBecameOfACommitThatIsCutIsUnknown) {
  const mysql::Endpoint endpoint{database_.url(), options_};
  mysql::Session session(endpoint, std::chrono::seconds(10));
  ASSERT_TRUE(session.Begin());
  ASSERT_TRUE(session.Write("UPDATE points SET points=points+1 WHERE id=1"));
  Cut();
  const Status done = session.Commit();
  Mend();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::Unknown) << done.error().message;
}

INSTANTIATE_TEST_SUITE_P(Ways, CutTls, testing::Values("connection killed", "server killed", "server silent"),
                         [](const auto& way) {
                           std::string name = way.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace millrace::engine
