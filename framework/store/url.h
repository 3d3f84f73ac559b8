// Store addresses: `sqlite:PATH`, `mysql://user@host:port/database?tls_ca=FILE`; passwords stand in files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/result.h"

namespace millrace::engine {

struct StoreUrl {
  enum class Kind { Sqlite, Mysql };
  Kind kind = Kind::Sqlite;
  std::string path;  // sqlite
  std::string user;  // mysql; percent-decoded
  std::string host;
  std::uint16_t port = 3306;
  std::string database;
  std::string tls_ca;  // empty: no TLS; else verified TLS or nothing
};

// Invalid for a wrong scheme, a password in the URL (there is a file for it), a missing part, an unknown
// option.
Result<StoreUrl> ParseStoreUrl(std::string_view text);

// Whether others than its owner may use a file of this mode, so that a secret in it is none. A credential
// that the service manager has made for this process, below $CREDENTIALS_DIRECTORY, may show bits of its
// group.
bool IsOpenToOthers(const std::string& path, mode_t mode);

// The content of a file that holds a secret, less one trailing newline. Invalid if it is missing or open to
// others; `what` is how messages call it.
Result<std::string> ReadPasswordFile(const std::string& path, const std::string& what = "password file");

}  // namespace millrace::engine
