#include "framework/http/server.h"

#include <fcntl.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <map>

#include "framework/base/log.h"
#include "framework/http/address.h"
#include "framework/http/router.h"
#include "framework/http/tls.h"
#include "framework/threads/thread.h"

namespace millrace::engine {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using Tcp = asio::ip::tcp;
using ErrorCodeOf = boost::system::error_code;
using Phase = HeldConnection::Phase;

constexpr Micros kAfterFailedAccept = std::chrono::milliseconds(100);  // the process may be out of files
constexpr Micros kLinger = std::chrono::seconds(1);  // for a client to read why it is refused
constexpr std::size_t kMostLingering = 1024 * 1024;  // bytes of what it still sends
constexpr std::size_t kReadStep = 4096;
constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 21\r\nContent-Type: text/plain\r\nConnection: close"
    "\r\n\r\ntoo many connections\n";

// What a connection needs of its server. All of it, connections too, belongs to the server's thread.
struct Keeper {
  const HttpBounds bounds;
  std::function<HttpResponse(const HttpRequest&)> answer;
  std::function<void(std::size_t bytes)> make_room_for;  // before an answer: others may have to go
  std::function<void(std::uint64_t id)> gone;
};

class Connection {
 public:
  Connection(const Keeper& keeper, std::uint64_t id)
      : keeper_(keeper), held_{id, Phase::Reading, BootClock::now()} {}
  virtual ~Connection() = default;
  virtual void Begin() = 0;
  // What is under way ends with an error soon.
  virtual void Close() = 0;
  const HeldConnection& held() const { return held_; }
  std::size_t unsent() const { return held_.phase == Phase::Writing ? unsent_ : 0; }

 protected:
  void Enter(Phase phase) {
    held_.phase = phase;
    held_.since = BootClock::now();
  }

  const Keeper& keeper_;
  HeldConnection held_;
  std::size_t unsent_ = 0;
};

std::string HeadOf(const HttpResponse& answer, bool keep) {
  std::string head = "HTTP/1.1 " + std::to_string(answer.status) + " " +
                     std::string(http::obsolete_reason(http::int_to_status(answer.status)));
  const auto add = [&head](std::string_view name, std::string_view value) {
    head.append("\r\n").append(name).append(": ").append(value);
  };
  if (!keep) add("Connection", "close");
  add("Content-Type", answer.content_type);
  add("Cache-Control", "no-store");
  add("X-Content-Type-Options", "nosniff");
  for (const auto& [name, value] : answer.headers) add(name, value);
  add("Content-Length", std::to_string(answer.body.size()));
  return head + "\r\n\r\n";
}

using PlainStream = beast::tcp_stream;
using TlsStream = beast::ssl_stream<beast::tcp_stream>;

template <class Stream>
class StreamConnection final : public Connection,
                               public std::enable_shared_from_this<StreamConnection<Stream>> {
 public:
  template <class... Arguments>
  StreamConnection(const Keeper& keeper, std::uint64_t id, Arguments&&... arguments)
      : Connection(keeper, id),
        stream_(std::forward<Arguments>(arguments)...),
        buffer_(keeper.bounds.header_bytes + keeper.bounds.body_bytes + kReadStep) {}

  void Begin() override {
    NewRequest();
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      Lowest().expires_after(keeper_.bounds.request);
      stream_.async_handshake(asio::ssl::stream_base::server,
                              [self = this->shared_from_this()](ErrorCodeOf failed) {
                                if (failed) return self->Drop();
                                self->Read();
                              });
    } else {
      Read();
    }
  }

  void Close() override { Lowest().close(); }

 private:
  using Parser = http::request_parser<http::string_body>;

  beast::tcp_stream& Lowest() { return beast::get_lowest_layer(stream_); }

  void Drop() {
    Close();
    keeper_.gone(held_.id);
  }

  void NewRequest() {
    parser_.emplace();
    parser_->eager(true);
    parser_->header_limit(static_cast<std::uint32_t>(keeper_.bounds.header_bytes));
    parser_->body_limit(keeper_.bounds.body_bytes);
  }

  // The whole of it, or the rest.
  void Read() {
    Lowest().expires_after(keeper_.bounds.request);
    Parse();
  }

  void Parse() {
    ErrorCodeOf failed;
    if (buffer_.size() > 0) buffer_.consume(parser_->put(buffer_.data(), failed));
    if (parser_->is_done()) return Serve(parser_->get());
    if (failed == http::error::header_limit) return Refuse(431, "the request's header is too long");
    if (failed == http::error::body_limit) return Refuse(413, "the body is too long");
    if ((failed && failed != http::error::need_more) || buffer_.size() == buffer_.max_size())
      return Refuse(400, "this is no HTTP request");
    ReadSome(&StreamConnection::Parse);
  }

  // Goes on with `next` when there are more bytes in the buffer.
  void ReadSome(void (StreamConnection::*next)()) {
    const std::size_t room = buffer_.max_size() - buffer_.size();
    stream_.async_read_some(buffer_.prepare(std::min(kReadStep, room)),
                            [self = this->shared_from_this(), next](ErrorCodeOf failed, std::size_t bytes) {
                              if (failed) return self->Drop();
                              self->buffer_.commit(bytes);
                              (self.get()->*next)();
                            });
  }

  void Refuse(unsigned status, const char* why) { Send(PlainRefusal(status, why), false, false); }

  void Serve(const Parser::value_type& request) {
    if (request.count(http::field::host) > 1 || request.count(http::field::authorization) > 1 ||
        (request.version() >= 11 && request.count(http::field::host) == 0) ||
        (request.has_content_length() && request.chunked())) {
      return Refuse(400, "one Host, one length and at most one Authorization are needed");
    }
    HttpRequest asked;
    asked.method = std::string(request.method_string());
    const std::string target(request.target());
    const auto mark = target.find('?');
    asked.path = target.substr(0, mark);
    if (mark != target.npos) asked.query = target.substr(mark + 1);
    if (request.count(http::field::host) == 1) asked.host = std::string(request[http::field::host]);
    asked.authorization = std::string(request[http::field::authorization]);
    asked.body = request.body();
    Send(keeper_.answer(asked), request.method() == http::verb::head, request.keep_alive());
  }

  void Send(HttpResponse answer, bool head, bool keep) {
    keeper_.make_room_for(answer.body.size());
    Enter(Phase::Writing);
    unsent_ = answer.body.size();
    head_ = HeadOf(answer, keep);
    body_ = head ? std::string() : std::move(answer.body);
    Lowest().expires_after(keeper_.bounds.answer);
    asio::async_write(stream_,
                      std::array{asio::buffer(std::as_const(head_)), asio::buffer(std::as_const(body_))},
                      [self = this->shared_from_this(), keep](ErrorCodeOf failed, std::size_t) {
                        self->Sent(failed, keep);
                      });
  }

  void Sent(ErrorCodeOf failed, bool keep) {
    body_ = {};
    if (failed) return Drop();
    Enter(Phase::Idle);
    if (!keep) return Finish();
    NewRequest();
    if (buffer_.size() > 0) return Next();
    Lowest().expires_after(keeper_.bounds.idle);
    ReadSome(&StreamConnection::Next);
  }

  void Next() {
    Enter(Phase::Reading);
    Read();
  }

  // A close with bytes unread would take the answer away from the client, too.
  void Finish() {
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      Lowest().expires_after(kLinger);
      stream_.async_shutdown([self = this->shared_from_this()](ErrorCodeOf) { self->Drop(); });
    } else {
      ErrorCodeOf ignored;
      Lowest().socket().shutdown(Tcp::socket::shutdown_send, ignored);
      Lowest().expires_after(kLinger);
      Linger();
    }
  }

  void Linger() {
    lingered_ += buffer_.size();
    if (lingered_ > kMostLingering) return Drop();
    buffer_.clear();
    ReadSome(&StreamConnection::Linger);
  }

  Stream stream_;
  beast::flat_buffer buffer_;
  std::optional<Parser> parser_;
  std::string head_;  // of the answer, as its body
  std::string body_;
  std::size_t lingered_ = 0;
};

Result<Tcp::endpoint> EndpointAt(asio::io_context& context, const HttpAddress& address) {
  ErrorCodeOf unknown;
  Tcp::resolver resolver(context);
  const auto found =
      resolver.resolve(address.host, std::to_string(address.port), Tcp::resolver::passive, unknown);
  if (!unknown && !found.empty()) return found.begin()->endpoint();
  // Name servers that are away may come back.
  return Fail(unknown == asio::error::host_not_found ? ErrorCode::Invalid : ErrorCode::Unavailable,
              "the host of " + ToText(address) + " is not known here: " + unknown.message() +
                  "; give an address of this machine");
}

// A child process that has the socket, too, keeps the port, or the client waiting, after this process has
// closed it. Boost opens and accepts without the flag.
template <class Socket>
void KeepFromChildren(Socket& socket) {
  (void)fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

Status ListenAt(Tcp::acceptor& acceptor, const Tcp::endpoint& endpoint, const std::string& text) {
  ErrorCodeOf failed;
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) KeepFromChildren(acceptor);
  if (!failed) acceptor.set_option(Tcp::acceptor::reuse_address(true), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  if (!failed) acceptor.listen(asio::socket_base::max_listen_connections, failed);
  if (!failed) return {};
  if (failed == asio::error::address_in_use) {
    return Fail(ErrorCode::Conflict,
                "another process listens on " + text +
                    " already: give another port, or 0 for any that is free, or stop it");
  }
  if (failed == boost::system::errc::address_not_available) {
    return Fail(ErrorCode::Unavailable, "this machine does not have the address of " + text +
                                            ": give one that it has, or try again once it is there");
  }
  return Fail(ErrorCode::Invalid, "this process can't listen on " + text + ": " + failed.message());
}

}  // namespace

class HttpServer::Body {
 public:
  explicit Body(HttpServerOptions options)
      : keeper_{options.bounds, [this](const HttpRequest& request) { return router_->Answer(request); },
                [this](std::size_t bytes) { MakeRoomFor(bytes); },
                [this](std::uint64_t id) { connections_.erase(id); }},
        options_(std::move(options)),
        acceptor_(context_),
        pause_(context_) {}
  ~Body() {
    context_.stop();
    thread_.Join();
  }

  Status Start() {
    BOOST_OUTCOME_TRY(address, ParseHttpAddress(options_.address));
    BOOST_OUTCOME_TRY(endpoint, EndpointAt(context_, address));
    open_ = !endpoint.address().is_loopback();
    if (open_ && !options_.tokens) {
      return Fail(ErrorCode::Invalid,
                  "on " + ToText(address) +
                      " other machines could ask this process: give --tokens FILE, too, or "
                      "an address of this machine alone, such as :" +
                      std::to_string(address.port));
    }
    if (options_.tls) {
      BOOST_OUTCOME_TRY(tls, MakeServerTls(*options_.tls));
      tls_.emplace(std::move(tls));
    }
    BOOST_OUTCOME_TRYV(ListenAt(acceptor_, endpoint, ToText(address)));
    address.port = acceptor_.local_endpoint().port();
    url_ = (tls_ ? "https://" : "http://") + ToText(address);
    router_.emplace(std::move(options_.routes),
                    Router::Rules{!open_, std::move(options_.tokens), address.host});
    Accept();
    return thread_.Start("http", [this] { context_.run(); });
  }

  const std::string& url() const { return url_; }
  bool open() const { return open_; }

 private:
  void Accept() {
    acceptor_.async_accept([this](ErrorCodeOf failed, Tcp::socket socket) {
      if (failed == asio::error::operation_aborted) return;
      if (!failed) {
        Admit(std::move(socket));
        return Accept();
      }
      // Out of files: whoever makes room for a newcomer gives one back.
      if (const auto leaver = WhoMakesRoom(Held(), BootClock::now(), keeper_.bounds.slow)) {
        End(*leaver);
        return Accept();
      }
      pause_.expires_after(kAfterFailedAccept);
      pause_.async_wait([this](ErrorCodeOf) { Accept(); });
    });
  }

  void Admit(Tcp::socket socket) {
    KeepFromChildren(socket);
    if (connections_.size() >= keeper_.bounds.connections) {
      const auto leaver = WhoMakesRoom(Held(), BootClock::now(), keeper_.bounds.slow);
      if (!leaver) return Refuse(std::move(socket));
      End(*leaver);
    }
    const std::uint64_t id = ++last_id_;
    std::shared_ptr<Connection> connection;
    if (tls_) {
      connection = std::make_shared<StreamConnection<TlsStream>>(keeper_, id, std::move(socket), *tls_);
    } else {
      connection = std::make_shared<StreamConnection<PlainStream>>(keeper_, id, std::move(socket));
    }
    connections_.emplace(id, connection);
    connection->Begin();
  }

  void MakeRoomFor(std::size_t bytes) {
    std::size_t unsent = bytes;
    for (const auto& [id, connection] : connections_) unsent += connection->unsent();
    while (unsent > keeper_.bounds.unsent_bytes) {
      const auto slowest = SlowestReader(Held());
      if (!slowest) return;
      unsent -= connections_.at(*slowest)->unsent();
      End(*slowest);
    }
  }

  // Never waits: what the socket does not take at once is lost.
  void Refuse(Tcp::socket socket) {
    ErrorCodeOf ignored;
    socket.non_blocking(true, ignored);
    if (!tls_) socket.write_some(asio::buffer(kFull), ignored);
  }

  void End(std::uint64_t id) {
    const auto found = connections_.find(id);
    const std::shared_ptr<Connection> connection = std::move(found->second);
    connections_.erase(found);
    connection->Close();
  }

  std::vector<HeldConnection> Held() const {
    std::vector<HeldConnection> held;
    held.reserve(connections_.size());
    for (const auto& [id, connection] : connections_) held.push_back(connection->held());
    return held;
  }

  const Keeper keeper_;
  HttpServerOptions options_;
  std::string url_;
  bool open_ = false;
  std::optional<asio::ssl::context> tls_;
  std::optional<Router> router_;

  // The thread's own, once it runs.
  asio::io_context context_{1};
  Tcp::acceptor acceptor_;
  asio::steady_timer pause_;
  std::uint64_t last_id_ = 0;
  std::map<std::uint64_t, std::shared_ptr<Connection>> connections_;

  Thread thread_;
};

HttpServer::HttpServer(std::unique_ptr<Body> body) : body_(std::move(body)) {}
HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::Start(HttpServerOptions options) {
  auto body = std::make_unique<Body>(std::move(options));
  BOOST_OUTCOME_TRYV(body->Start());
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(body)));
}

const std::string& HttpServer::url() const { return body_->url(); }
bool HttpServer::open() const { return body_->open(); }

}  // namespace millrace::engine
