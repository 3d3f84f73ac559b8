#include "framework/http/client.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <optional>

#include "framework/http/tls.h"

namespace millrace::engine {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using AskError = boost::system::error_code;

constexpr std::size_t kLargestReply = 16 * 1024 * 1024;
constexpr std::size_t kReplyStep = 64 * 1024;

// One question over one stream; whoever runs the context bounds its time.
template <class Stream>
class Exchange {
 public:
  Exchange(const HttpQuestion& question, Stream& stream) : stream_(stream) {
    request_ = "GET " + question.path + " HTTP/1.1\r\nHost: " + ToText(question.address) +
               "\r\nConnection: close\r\n\r\n";
    parser_.eager(true);
    parser_.body_limit(kLargestReply);
  }

  void Begin(const asio::ip::tcp::resolver::results_type& at) {
    beast::get_lowest_layer(stream_).async_connect(
        at, [this](AskError failed, const asio::ip::tcp::endpoint&) { Connected(failed); });
  }

  std::optional<AskError> ended;  // nullopt: still under way
  http::response<http::string_body> Reply() { return parser_.release(); }

 private:
  void Connected(AskError failed) {
    if constexpr (std::is_same_v<Stream, beast::tcp_stream>) {
      Ask(failed);
    } else {
      if (failed) return End(failed);
      stream_.async_handshake(asio::ssl::stream_base::client, [this](AskError e) { Ask(e); });
    }
  }
  void Ask(AskError failed) {
    if (failed) return End(failed);
    asio::async_write(stream_, asio::buffer(request_), [this](AskError e, std::size_t) { Read(e); });
  }
  void Read(AskError failed) {
    if (failed) return End(failed);
    stream_.async_read_some(buffer_.prepare(kReplyStep),
                            [this](AskError e, std::size_t bytes) { Got(e, bytes); });
  }
  void Got(AskError failed, std::size_t bytes) {
    buffer_.commit(bytes);
    if (failed == asio::error::eof && parser_.got_some()) {
      parser_.put_eof(failed);
    } else if (!failed) {
      buffer_.consume(parser_.put(buffer_.data(), failed));
    }
    if (parser_.is_done()) return End({});
    Read(failed == http::error::need_more ? AskError() : failed);
  }
  void End(AskError failed) { ended = failed; }

  Stream& stream_;
  std::string request_;
  beast::flat_buffer buffer_;
  http::response_parser<http::string_body> parser_;
};

template <class Stream>
Result<HttpReply> Ask(const HttpQuestion& question, asio::io_context& context, Stream& stream) {
  const auto nobody = [&](const std::string& why) {
    return Fail(ErrorCode::Unavailable, "nobody answers on " + ToText(question.address) + ": " + why);
  };
  AskError unknown;
  asio::ip::tcp::resolver resolver(context);
  const auto at = resolver.resolve(question.address.host, std::to_string(question.address.port), unknown);
  if (unknown) return nobody(unknown.message());
  Exchange<Stream> exchange(question, stream);
  exchange.Begin(at);
  context.run_for(question.limit);
  if (!exchange.ended) return nobody("no answer in time");
  if (*exchange.ended) return nobody(exchange.ended->message());
  http::response<http::string_body> reply = exchange.Reply();
  return HttpReply{reply.result_int(), std::move(reply.body())};
}

}  // namespace

Result<HttpReply> AskHttp(const HttpQuestion& question) {
  asio::io_context context;
  if (question.tls_authorities.empty()) {
    beast::tcp_stream stream(context);
    return Ask(question, context, stream);
  }
  BOOST_OUTCOME_TRY(tls, MakeClientTls(question.tls_authorities));
  beast::ssl_stream<beast::tcp_stream> stream(context, tls);
  stream.set_verify_callback(asio::ssl::host_name_verification(question.address.host));
  return Ask(question, context, stream);
}

}  // namespace millrace::engine
