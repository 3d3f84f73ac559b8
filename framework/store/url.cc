#include "framework/store/url.h"

#include <sys/stat.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "framework/base/utf8.h"
#include "framework/files/paths.h"

namespace millrace::engine {
namespace {

constexpr std::string_view kForms = "; write sqlite:PATH or mysql://user@host:port/database";

bool FromHex(char c, int& value) {
  if (c >= '0' && c <= '9') return value = c - '0', true;
  if (c >= 'a' && c <= 'f') return value = c - 'a' + 10, true;
  if (c >= 'A' && c <= 'F') return value = c - 'A' + 10, true;
  return false;
}

Result<std::string> PercentDecode(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int high = 0;
    int low = 0;
    if (text[i] != '%') {
      out += text[i];
    } else if (i + 2 < text.size() && FromHex(text[i + 1], high) && FromHex(text[i + 2], low)) {
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      return Fail(ErrorCode::Invalid, "a '%' in a store URL must be followed by two hexadecimal digits");
    }
  }
  return out;
}

Result<StoreUrl> ParseMysql(std::string_view rest) {
  StoreUrl url;
  url.kind = StoreUrl::Kind::Mysql;
  std::string_view options;
  if (const auto mark = rest.find('?'); mark != std::string_view::npos) {
    options = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos || slash + 1 == rest.size()) {
    return Fail(ErrorCode::Invalid, "the store URL names no database" + std::string(kForms));
  }
  url.database = std::string(rest.substr(slash + 1));
  std::string_view authority = rest.substr(0, slash);
  if (const auto at = authority.rfind('@'); at != std::string_view::npos) {
    if (authority.substr(0, at).find(':') != std::string_view::npos) {
      return Fail(
          ErrorCode::Invalid,
          "a password does not belong into a store URL: put it into a file that only you can read and "
          "name it by MILLRACE_PASSWORD_FILE");
    }
    BOOST_OUTCOME_TRY(user, PercentDecode(authority.substr(0, at)));
    url.user = user;
    authority = authority.substr(at + 1);
  }
  if (const auto colon = authority.rfind(':'); colon != std::string_view::npos) {
    const std::string_view port = authority.substr(colon + 1);
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), url.port);
    if (error != std::errc() || end != port.data() + port.size() || url.port == 0) {
      return Fail(ErrorCode::Invalid, "'" + Excerpt(port) + "' is not a port, in the store URL");
    }
    authority = authority.substr(0, colon);
  }
  url.host = std::string(authority);
  if (url.host.empty() || url.user.empty()) {
    return Fail(ErrorCode::Invalid, "the store URL lacks a user or a host" + std::string(kForms));
  }
  if (!options.empty()) {
    if (!options.starts_with("tls_ca=") || options.size() == 7 ||
        options.find('&') != std::string_view::npos) {
      return Fail(ErrorCode::Invalid,
                  "unknown option '" + Excerpt(options) + "' in the store URL; the only one is tls_ca=FILE");
    }
    BOOST_OUTCOME_TRY(file, PercentDecode(options.substr(7)));
    url.tls_ca = file;
  }
  return url;
}

// The service manager made the folder of its credentials for this process alone. Where it lets the process's
// user read them by an ACL, the group's bits show the ACL's mask and nobody's right.
bool IsCredential(const std::string& path) {
  const char* folder = std::getenv("CREDENTIALS_DIRECTORY");
  return folder != nullptr && *folder != '\0' && path.starts_with(std::string(folder) + "/");
}

}  // namespace

Result<StoreUrl> ParseStoreUrl(std::string_view text) {
  if (text.starts_with("sqlite:")) {
    StoreUrl url;
    url.path = std::string(text.substr(7));
    if (url.path.empty()) return Fail(ErrorCode::Invalid, "the store URL 'sqlite:' names no file");
    return url;
  }
  if (text.starts_with("mysql://")) return ParseMysql(text.substr(8));
  return Fail(ErrorCode::Invalid, "'" + Excerpt(text.substr(0, text.find(':'))) + "' is not a kind of store" +
                                      std::string(kForms));
}

bool IsOpenToOthers(const std::string& path, mode_t mode) {
  return (mode & (IsCredential(path) ? S_IRWXO : S_IRWXG | S_IRWXO)) != 0;
}

Result<std::string> ReadPasswordFile(const std::string& path, const std::string& what) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return Fail(ErrorCode::Invalid, "the " + what + " " + path + " can't be read: " + std::strerror(errno));
  }
  if (IsOpenToOthers(path, info.st_mode)) {
    return Fail(ErrorCode::Invalid,
                "the " + what + " " + path + " can be read by others: run chmod 600 " + path);
  }
  auto password = ReadFileText(path);
  if (!password) return Fail(ErrorCode::Invalid, "the " + what + " " + password.error().message);
  if (password->ends_with('\n')) password->pop_back();
  return password;
}

}  // namespace millrace::engine
