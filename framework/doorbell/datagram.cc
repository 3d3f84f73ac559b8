#include "framework/doorbell/datagram.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/udp.hpp>
#include <charconv>
#include <sstream>

#include "framework/policy/load_balance.h"

namespace millrace::engine {
namespace {

namespace asio = boost::asio;
using Udp = asio::ip::udp;

constexpr std::string_view kMagic = "millrace-ring";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kAny = "*";
constexpr std::size_t kLongest = 1200;  // passes every network whole
constexpr std::size_t kLongestShard = 48;

// `127.0.0.1:4711`, `[::1]:4711`, and both without a port, which is 0 then.
std::optional<Udp::endpoint> EndpointOf(std::string_view text) {
  std::uint16_t port = 0;
  const auto colon = text.rfind(':');
  const bool bare_v6 = colon != text.npos && text.find(':') != colon && text.back() != ']' && text[0] != '[';
  if (colon != text.npos && !bare_v6 && text.back() != ']') {
    const std::string_view digits = text.substr(colon + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
    text = text.substr(0, colon);
  }
  if (text.size() > 1 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  boost::system::error_code bad;
  const auto host = asio::ip::make_address(std::string(text), bad);
  if (bad) return std::nullopt;
  return Udp::endpoint(host, port);
}

// nullopt: no worker can be rung there.
std::optional<Udp::endpoint> WorkerAt(const std::string& address) {
  const auto at = EndpointOf(address);
  return at && at->port() != 0 && !at->address().is_unspecified() ? at : std::nullopt;
}

std::string TextOf(const Udp::endpoint& endpoint) {
  std::ostringstream text;
  text << endpoint;
  return text.str();
}

// Without a reactor, which takes three descriptors and throws where there are none.
void Send(const Udp::endpoint& to, std::string_view text) noexcept {
  const int socket = ::socket(to.protocol().family(), SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  (void)::sendto(socket, text.data(), text.size(), 0, to.data(), static_cast<socklen_t>(to.size()));
  ::close(socket);
}

}  // namespace

std::string ToText(const ShardRing& ring) {
  std::string text = std::string(kMagic) + " " + std::string(kVersion) + " " + ring.shard + " ";
  text += ring.ring.table ? ring.ring.table->text() : kAny;
  const std::string slices = ring.ring.slices.empty() ? "" : FormatLoadBalance(ring.ring.slices);
  const bool fits = text.size() + 1 + slices.size() <= kLongest;
  return text + " " + (slices.empty() || !fits ? std::string(kAny) : slices);
}

std::optional<ShardRing> ReadShardRing(std::string_view text) {
  if (text.size() > kLongest) return std::nullopt;
  std::istringstream words{std::string(text)};
  std::string magic;
  std::string version;
  std::string table;
  std::string slices;
  std::string more;
  ShardRing read;
  words >> magic >> version >> read.shard >> table >> slices;
  if (words.fail() || (words >> more) || magic != kMagic || version != kVersion) return std::nullopt;
  if (read.shard.size() > kLongestShard) return std::nullopt;
  if (table != kAny) {
    read.ring.table = ParseTableName(table);
    if (!read.ring.table) return std::nullopt;
  }
  if (slices != kAny) {
    auto numbers = ParseLoadBalance(slices);
    if (!numbers) return std::nullopt;
    read.ring.slices = std::move(*numbers);
  }
  return read;
}

bool IsRingAddress(const std::string& address) { return WorkerAt(address).has_value(); }

void SendRing(std::span<const std::string> addresses, const ShardRing& ring) {
  const std::string text = ToText(ring);
  for (const std::string& address : addresses)
    if (const auto worker = WorkerAt(address)) Send(*worker, text);
}

struct RingSocket::Socket {
  asio::io_context context;
  Udp::socket udp{context};
};

RingSocket::RingSocket(std::unique_ptr<Socket> socket, std::string address)
    : socket_(std::move(socket)), address_(std::move(address)) {}
RingSocket::~RingSocket() = default;

Result<std::unique_ptr<RingSocket>> RingSocket::Open(const std::string& address) {
  const auto at = EndpointOf(address);
  if (!at) {
    return Fail(ErrorCode::Invalid,
                "'" + address +
                    "' is no address for the doorbell: write an IP address of this host, with a "
                    "port or without, such as 10.0.0.7:7460");
  }
  if (at->address().is_unspecified()) {
    return Fail(ErrorCode::Invalid, "the doorbell can't stand at '" + address +
                                        "', which is every address of this host and none that others reach: "
                                        "write the one that they do, such as 10.0.0.7:7460");
  }
  auto socket = std::make_unique<Socket>();
  boost::system::error_code error;
  socket->udp.open(at->protocol(), error);
  if (!error) socket->udp.bind(*at, error);
  if (!error) socket->udp.non_blocking(true, error);
  if (error) {
    return Fail(ErrorCode::Unavailable, "the doorbell can't listen on " + address + ": " + error.message());
  }
  std::string own = TextOf(socket->udp.local_endpoint());
  return std::unique_ptr<RingSocket>(new RingSocket(std::move(socket), std::move(own)));
}

std::optional<ShardRing> RingSocket::Wait(Micros limit) {
  pollfd readable{socket_->udp.native_handle(), POLLIN, 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(limit).count();
  if (poll(&readable, 1, static_cast<int>(ms)) <= 0) return std::nullopt;
  std::array<char, kLongest + 1> buffer{};  // longer ones are cut, and refused
  Udp::endpoint from;
  boost::system::error_code error;
  const std::size_t size = socket_->udp.receive_from(asio::buffer(buffer), from, 0, error);
  if (error) return std::nullopt;
  return ReadShardRing({buffer.data(), size});
}

void RingSocket::Interrupt() const {
  const Udp::endpoint own = *EndpointOf(address_);
  (void)::sendto(socket_->udp.native_handle(), "", 0, 0, own.data(), static_cast<socklen_t>(own.size()));
}

}  // namespace millrace::engine
