// A plain connection, for a test's own eyes and hands: none of the store's code is in it. One thread at a
// time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/result.h"
#include "framework/store/task_transaction.h"
#include "framework/store/url.h"

namespace sql {
class Connection;  // NOLINT(bugprone-forward-declaration-namespace): that of the connector
}

namespace millrace::engine {

class SqlConnection {
 public:
  // Dies with a message if it can't connect. An empty database in the URL is allowed.
  SqlConnection(const StoreUrl& url, const std::string& password_file);
  ~SqlConnection();
  SqlConnection(const SqlConnection&) = delete;
  SqlConnection& operator=(const SqlConnection&) = delete;

  // The error's message begins with the native code.
  Result<SqlResult> Run(const std::string& sql);
  // The first cell; empty for NULL or no row. Dies on an error.
  std::string Ask(const std::string& sql);
  std::uint64_t id() { return std::stoull(Ask("SELECT CONNECTION_ID()")); }

 private:
  std::unique_ptr<sql::Connection> connection_;
};

}  // namespace millrace::engine
