#include "framework/http/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <vector>

#include "framework/http/client.h"
#include "tests/support/test_certificate.h"

namespace millrace::engine {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::size_t kLarge = 32 * 1024 * 1024;
constexpr const char* kAskOpen = "GET /open HTTP/1.1\r\nHost: localhost\r\n\r\n";

std::string ContentOf(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

// A client that sends what it likes.
class Peer {
 public:
  explicit Peer(std::uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval limit{5, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    inet_pton(AF_INET, "127.0.0.1", &at.sin_addr);
    EXPECT_EQ(connect(socket_, reinterpret_cast<sockaddr*>(&at), sizeof at), 0);
  }
  ~Peer() { close(socket_); }
  Peer(const Peer&) = delete;

  void Send(const std::string& text) const { (void)send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  void SayNoMore() const { shutdown(socket_, SHUT_WR); }
  // What comes until `end` is in it, or until the server closes: then `closed` is added.
  std::string Read(const std::string& end = "never") const {
    std::string text;
    char buffer[4096];
    while (text.find(end) == text.npos) {
      const auto size = recv(socket_, buffer, sizeof buffer, 0);
      if (size < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return text + "timeout";
      if (size <= 0) return text + "closed";
      text.append(buffer, static_cast<std::size_t>(size));
    }
    return text;
  }
  std::string Ask(const std::string& text, const std::string& end) const {
    Send(text);
    return Read(end);
  }

 private:
  const int socket_;
};

class HttpServerTest : public ::testing::Test {
 protected:
  void Serve(HttpServerOptions options = {}) {
    if (options.address.empty()) options.address = ":0";
    options.routes = {
        {"GET", "/open", std::nullopt, [](const HttpRequest&) { return HttpResponse{.body = "hello"}; }},
        {"GET", "/large", std::nullopt,
         [](const HttpRequest&) { return HttpResponse{.body = std::string(kLarge, 'x')}; }}};
    auto server = HttpServer::Start(std::move(options));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    const std::string url = server_->url();
    port_ = static_cast<std::uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }
  static std::string Refusal(HttpServerOptions options) {
    const auto server = HttpServer::Start(std::move(options));
    return server ? "" : std::string(ToString(server.error().code)) + ": " + server.error().message;
  }

  std::unique_ptr<HttpServer> server_;
  std::uint16_t port_ = 0;
};

TEST_F(HttpServerTest, AnswersAndKeepsTheConnection) {
  Serve();
  const Peer peer(port_);
  EXPECT_THAT(peer.Ask(kAskOpen, "hello"),
              AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("Content-Length: 5")));
  EXPECT_THAT(peer.Ask(kAskOpen, "hello"), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, HeadHasTheLengthAndNoBody) {
  Serve();
  const Peer peer(port_);
  peer.Send("HEAD /open HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(peer.Read(),
              AllOf(StartsWith("HTTP/1.1 200 OK"), HasSubstr("Content-Length: 5"), Not(HasSubstr("hello"))));
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInTheirOrder) {
  Serve();
  const Peer peer(port_);
  peer.Send("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n" + std::string(kAskOpen));
  peer.SayNoMore();
  const std::string all = peer.Read();
  EXPECT_LT(all.find("404 Not Found"), all.find("200 OK"));
  EXPECT_THAT(all, HasSubstr("helloclosed"));
}

TEST_F(HttpServerTest, AnswersWhoSaysNoMore) {
  Serve();
  const Peer peer(port_);
  peer.Send(kAskOpen);
  peer.SayNoMore();
  EXPECT_THAT(peer.Read(), HasSubstr("helloclosed"));
}

TEST_F(HttpServerTest, RefusesWhatIsTooLongOrNoRequest) {
  Serve({.bounds = {.header_bytes = 1024, .body_bytes = 10}});
  const std::string long_header =
      "GET /open HTTP/1.1\r\nHost: localhost\r\nX: " + std::string(4000, 'x') + "\r\n\r\n";
  EXPECT_THAT(Peer(port_).Ask(long_header, "never"), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(Peer(port_).Ask("GET /" + std::string(4000, 'x'), "never"), StartsWith("HTTP/1.1 431"));
  EXPECT_THAT(
      Peer(port_).Ask("POST /open HTTP/1.1\r\nHost: localhost\r\nContent-Length: 11\r\n\r\n", "never"),
      StartsWith("HTTP/1.1 413"));
  EXPECT_THAT(Peer(port_).Ask("\x16\x03\x01\x02 garbage\r\n\r\n", "never"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Peer(port_).Ask("GET /open HTTP/1.1\r\n\r\n", "never"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Peer(port_).Ask("GET /open HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\n\r\n", "never"),
              StartsWith("HTTP/1.1 400"));
}

TEST_F(HttpServerTest, OnLoopbackAForeignHostIsRefused) {
  Serve();
  EXPECT_THAT(Peer(port_).Ask("GET /open HTTP/1.1\r\nHost: evil.example\r\n\r\n", "name"),
              StartsWith("HTTP/1.1 421"));
}

TEST_F(HttpServerTest, ClosesWhoTakesTooLongToAsk) {
  Serve({.bounds = {.request = std::chrono::milliseconds(50)}});
  const Peer silent(port_);
  const Peer dribbling(port_);
  dribbling.Send("GET /op");
  EXPECT_EQ(silent.Read(), "closed");
  EXPECT_EQ(dribbling.Read(), "closed");
}

TEST_F(HttpServerTest, TheTimeOfASecondRequestBeginsWithItsFirstByte) {
  Serve({.bounds = {.request = std::chrono::milliseconds(50), .idle = std::chrono::minutes(1)}});
  const Peer peer(port_);
  peer.Ask(kAskOpen, "hello");
  EXPECT_THAT(peer.Ask(kAskOpen, "hello"), HasSubstr("hello"));
  peer.Send("GET /op");
  EXPECT_EQ(peer.Read(), "closed");
}

TEST_F(HttpServerTest, ClosesWhoIsIdleForTooLong) {
  Serve({.bounds = {.idle = std::chrono::milliseconds(50)}});
  const Peer peer(port_);
  peer.Ask(kAskOpen, "hello");
  EXPECT_EQ(peer.Read(), "closed");
}

TEST_F(HttpServerTest, ClosesWhoTakesTooLongToReadAndAnswersOthersMeanwhile) {
  Serve({.bounds = {.answer = std::chrono::milliseconds(50), .idle = std::chrono::milliseconds(200)}});
  const Peer slow(port_);
  slow.Ask("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n", "xxxx");
  const Peer other(port_);
  EXPECT_THAT(other.Ask(kAskOpen, "hello"), HasSubstr("hello"));
  EXPECT_EQ(other.Read(), "closed");  // 200 ms later
  EXPECT_LT(slow.Read().size(), kLarge);
}

TEST_F(HttpServerTest, TheOldestIdleConnectionMakesRoom) {
  Serve({.bounds = {.connections = 2}});
  const Peer first(port_);
  first.Ask(kAskOpen, "hello");
  const Peer second(port_);
  second.Ask(kAskOpen, "hello");
  const Peer third(port_);
  EXPECT_THAT(third.Ask(kAskOpen, "hello"), HasSubstr("hello"));
  EXPECT_EQ(first.Read(), "closed");
  EXPECT_THAT(second.Ask(kAskOpen, "hello"), HasSubstr("hello"));
}

TEST_F(HttpServerTest, WhoComesWhileAllAreBusyIsToldSoAtOnce) {
  Serve({.bounds = {.connections = 1, .slow = std::chrono::minutes(1)}});
  const Peer slow(port_);
  slow.Ask("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n", "xxxx");
  EXPECT_THAT(Peer(port_).Read(), StartsWith("HTTP/1.1 503"));
}

TEST_F(HttpServerTest, UnsentAnswersAreBounded) {
  Serve({.bounds = {.unsent_bytes = 2 * kLarge}});
  std::vector<std::unique_ptr<Peer>> slow;
  for (int i = 0; i < 3; ++i) {
    slow.push_back(std::make_unique<Peer>(port_));
    slow.back()->Ask("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n", "xxxx");
  }
  EXPECT_LT(slow.front()->Read().size(), kLarge);
}

// A child that is started while the server runs would keep its port after its end.
TEST_F(HttpServerTest, NoSocketOfItsOwnPassesToAChildProcess) {
  Serve();
  const Peer peer(port_);
  peer.Ask(kAskOpen, "hello");
  int sockets = 0;
  for (int file = 0; file < 1024; ++file) {
    sockaddr_in at{};
    socklen_t size = sizeof at;
    if (getsockname(file, reinterpret_cast<sockaddr*>(&at), &size) != 0) continue;
    if (at.sin_family != AF_INET || at.sin_port != htons(port_)) continue;
    ++sockets;
    EXPECT_NE(fcntl(file, F_GETFD) & FD_CLOEXEC, 0);
  }
  EXPECT_EQ(sockets, 2) << "one that listens, and one for the client";
}

TEST_F(HttpServerTest, AnAddressInUseIsAConflict) {
  Serve();
  EXPECT_THAT(
      Refusal({.address = ":" + std::to_string(port_)}),
      AllOf(StartsWith(ToString(ErrorCode::Conflict)), HasSubstr("another process listens on 127.0.0.1:")));
}

TEST_F(HttpServerTest, OtherMachinesNeedTokens) {
  EXPECT_THAT(Refusal({.address = "0.0.0.0:0"}),
              AllOf(StartsWith(ToString(ErrorCode::Invalid)), HasSubstr("give --tokens FILE")));
  const std::string line = "view v " + std::string(64, 'a');
  Serve({.address = "0.0.0.0:0", .tokens = *Tokens::Parse(line, "tokens")});
  EXPECT_TRUE(server_->open());
}

TEST_F(HttpServerTest, AnAddressThatThisMachineDoesNotHaveMayComeYet) {
  const std::string line = "view v " + std::string(64, 'a');
  EXPECT_THAT(Refusal({.address = "192.0.2.1:0", .tokens = *Tokens::Parse(line, "tokens")}),
              AllOf(StartsWith(ToString(ErrorCode::Unavailable)), HasSubstr("does not have the address of")));
}

TEST_F(HttpServerTest, SpeaksTlsAndNothingElseWithACertificate) {
  const TestCertificate certificate;
  Serve({.tls =
             TlsIdentity{ContentOf(certificate.certificate()), "cert", ContentOf(certificate.key()), "key"}});
  const auto reply = AskHttp({{"127.0.0.1", port_}, "/open", certificate.certificate()});
  ASSERT_TRUE(reply) << reply.error().message;
  EXPECT_EQ(reply->body, "hello");
  EXPECT_FALSE(AskHttp({{"127.0.0.1", port_}, "/open", ""}));
  EXPECT_THAT(Peer(port_).Ask(kAskOpen, "never"), Not(HasSubstr("hello")));
}

TEST_F(HttpServerTest, AClientDistrustsACertificateOfSomebodyElse) {
  const TestCertificate certificate("DNS:elsewhere.example");
  Serve({.tls =
             TlsIdentity{ContentOf(certificate.certificate()), "cert", ContentOf(certificate.key()), "key"}});
  EXPECT_FALSE(AskHttp({{"127.0.0.1", port_}, "/open", certificate.certificate()}));
}

TEST_F(HttpServerTest, AKeyOfAnotherCertificateIsRefused) {
  const TestCertificate one;
  const TestCertificate other;
  EXPECT_THAT(Refusal({.address = ":0",
                       .tls = TlsIdentity{ContentOf(one.certificate()), "cert.pem", ContentOf(other.key()),
                                          "key.pem"}}),
              HasSubstr("key.pem holds no private key of the certificate in cert.pem"));
  EXPECT_THAT(Refusal({.address = ":0", .tls = TlsIdentity{"x", "cert.pem", "y", "key.pem"}}),
              HasSubstr("cert.pem holds no certificate"));
}

TEST_F(HttpServerTest, ClientSaysThatNobodyAnswers) {
  Serve();
  server_.reset();
  EXPECT_EQ(AskHttp({{"127.0.0.1", port_}, "/open", ""}).error().code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace millrace::engine
