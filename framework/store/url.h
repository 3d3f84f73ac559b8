// Store addresses: `sqlite:PATH`, `mysql://user@host:port/database?tls_ca=FILE`. Pure.
#pragma once

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

// The content of a file that holds a secret, less one trailing newline. Invalid if it is missing or others
// can read it; `what` is how messages call it.
Result<std::string> ReadPasswordFile(const std::string& path, const std::string& what = "password file");

}  // namespace millrace::engine
