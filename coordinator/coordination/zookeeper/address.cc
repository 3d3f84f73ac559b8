#include "coordinator/coordination/zookeeper/address.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "framework/base/utf8.h"

namespace millrace::engine {
namespace {

constexpr std::string_view kDefaultPort = "2181";

auto Wrong(std::string_view text, const std::string& what) {
  return Fail(ErrorCode::Invalid,
              "the ZooKeeper address '" + Excerpt(text, 200) + "' " + what +
                  ": write host:port,host:port/chroot, for example zk1:2181,zk2:2181/jobs");
}

bool IsPort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port > 0 && port <= 65535;
}

// `host:port` with the default port where there is none; nullopt if it is no such thing. `[::1]:2181` has its
// colons in brackets.
std::optional<std::string> HostWithPort(std::string_view text) {
  const auto bracket = text.rfind(']');
  const auto colon = text.find(':', bracket == text.npos ? 0 : bracket);
  const auto host = text.substr(0, colon);
  const auto port = colon == text.npos ? kDefaultPort : text.substr(colon + 1);
  const bool plain = host.find_first_of(" \t\n/@") == host.npos;
  if (host.empty() || !plain || !IsPort(port)) return std::nullopt;
  return std::string(host) + ":" + std::string(port);
}

bool IsChroot(std::string_view path) {
  return !path.ends_with('/') && path.find("//") == path.npos && path.find_first_of(" \t\n,") == path.npos;
}

// It stands before the path of every node; and a person may have to make each of its parts.
constexpr std::size_t kLongestChroot = 255;

}  // namespace

Result<ZookeeperAddress> ParseZookeeperAddress(std::string_view text) {
  ZookeeperAddress address;
  const auto slash = text.find('/');
  std::string_view hosts = text.substr(0, slash);
  if (slash != text.npos && slash + 1 < text.size()) address.chroot = text.substr(slash);
  if (!IsChroot(address.chroot)) return Wrong(text, "has a chroot that is no path");
  if (address.chroot.size() > kLongestChroot) {
    return Wrong(text, "has a chroot of " + std::to_string(address.chroot.size()) + " bytes, where " +
                           std::to_string(kLongestChroot) + " are allowed");
  }
  while (true) {
    const auto comma = hosts.find(',');
    const auto host = HostWithPort(hosts.substr(0, comma));
    if (!host) return Wrong(text, "names '" + Excerpt(hosts.substr(0, comma)) + "', which is no host:port");
    if (!address.hosts.empty()) address.hosts += ',';
    address.hosts += *host;
    if (comma == hosts.npos) return address;
    hosts.remove_prefix(comma + 1);
  }
}

std::string ChrootCommands(const ZookeeperAddress& address) {
  std::string commands;
  for (std::size_t end = 0; end != address.chroot.npos;) {
    end = address.chroot.find('/', end + 1);
    if (!commands.empty()) commands += "; ";
    commands += "zkCli.sh -server " + address.hosts + " create " + address.chroot.substr(0, end);
  }
  return commands;
}

Status CheckClusterName(std::string_view name) {
  const bool plain = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  });
  if (name.empty() || name.size() > 64 || name.front() == '.' || !plain) {
    return Fail(ErrorCode::Invalid,
                "the cluster name '" + Excerpt(name) +
                    "' must be 1 to 64 letters, digits, '.', '_' or '-', and begin with no "
                    "dot");
  }
  return {};
}

}  // namespace millrace::engine
