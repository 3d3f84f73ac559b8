#include "framework/http/address.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <cctype>
#include <charconv>
#include <optional>
#include <utility>

#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

constexpr const char* kLoopback = "127.0.0.1";
constexpr std::size_t kLongestHost = 253;  // of a name in the DNS

std::optional<std::uint16_t> ReadPort(std::string_view digits) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return port;
}

bool IsHostName(std::string_view host) {
  return !host.empty() && host.size() <= kLongestHost &&
         std::all_of(host.begin(), host.end(), [](unsigned char c) {
           return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
         });
}

bool IsV6(std::string_view host) {
  boost::system::error_code bad;
  boost::asio::ip::make_address_v6(std::string(host), bad);
  return !bad;
}

bool IsLoopbackAddress(std::string_view host) {
  boost::system::error_code bad;
  const auto address = boost::asio::ip::make_address(std::string(host), bad);
  return !bad && address.is_loopback();
}

// As two are compared.
std::string PlainName(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  if (name.ends_with('.')) name.pop_back();
  return name;
}

Failure WrongAddress(std::string_view text) {
  return Fail(ErrorCode::Invalid,
              "'" + Escape(text.substr(0, kLongestHost)) +
                  "' is no address to listen on: write host:port, [::1]:port, or :port for "
                  "this machine alone, such as :9470");
}

}  // namespace

Result<HttpAddress> ParseHttpAddress(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos) return WrongAddress(text);
  const auto port = ReadPort(text.substr(colon + 1));
  std::string_view host = text.substr(0, colon);
  if (!port) return WrongAddress(text);
  if (host.empty()) return HttpAddress{kLoopback, *port};
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (!IsV6(host)) return WrongAddress(text);
  } else if (!IsHostName(host)) {
    return WrongAddress(text);
  }
  return HttpAddress{std::string(host), *port};
}

std::string ToText(const HttpAddress& address) {
  const bool v6 = address.host.find(':') != address.host.npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

bool NamesThisMachine(std::string_view host_header, std::string_view own_name) {
  std::string host(host_header);
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    if (end == host.npos) return false;
    const std::string rest = host.substr(end + 1);
    if (!rest.empty() && (rest.front() != ':' || !ReadPort(std::string_view(rest).substr(1)))) return false;
    host = host.substr(1, end - 1);
    return IsV6(host) && IsLoopbackAddress(host);
  }
  if (const auto colon = host.find(':'); colon != host.npos) {
    if (!ReadPort(std::string_view(host).substr(colon + 1))) return false;
    host.resize(colon);
  }
  host = PlainName(std::move(host));
  if (!host.empty() && host == PlainName(std::string(own_name))) return true;
  return host == "localhost" || host.ends_with(".localhost") || IsLoopbackAddress(host);
}

}  // namespace millrace::engine
