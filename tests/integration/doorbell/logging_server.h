// A server that writes a binary log, in the format that is its default (MariaDB's is MIXED), and an account
// that may follow it.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "framework/store/mysql/store.h"
#include "tests/support/private_mariadb.h"
#include "tests/support/sql_connection.h"

namespace millrace::engine {

class LoggingServer {
 public:
  // `options` are the server's, beside those.
  explicit LoggingServer(const std::vector<std::string>& options = {})
      : server_(Options(options)), database_(ServerOf(server_)) {
    password_file_ = "/tmp/millrace-bell-" + std::to_string(server_.port());
    {
      std::ofstream file(password_file_);
      std::filesystem::permissions(password_file_,
                                   std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
      file << "ring-ring\n";
    }
    server_.AsRoot(
        "CREATE USER bell@'127.0.0.1' IDENTIFIED BY 'ring-ring'; "
        "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO bell@'127.0.0.1'");
    auto store = Open(database_.url().port, Bell());
    const Status applied = store->OpenSchema()->Apply({.tables = 1, .slices = 16});
    EXPECT_TRUE(applied) << applied.error().message;
  }
  ~LoggingServer() { std::filesystem::remove(password_file_); }

  PrivateMariadb& server() { return server_; }
  const std::string& database() const { return database_.url().database; }
  const StoreUrl& url() const { return database_.url(); }
  const std::string& bell_password_file() const { return password_file_; }
  const std::string& password_file() const { return database_.password_file(); }  // the workers'
  DoorbellAccount Bell() const { return {"bell", password_file_}; }

  std::unique_ptr<Store> Open(std::uint16_t port, std::optional<DoorbellAccount> doorbell) const {
    StoreUrl url = database_.url();
    url.port = port;
    return Open(url, std::move(doorbell));
  }
  std::unique_ptr<Store> Open(const StoreUrl& url, std::optional<DoorbellAccount> doorbell) const {
    StoreOptions options;
    options.password_file = database_.password_file();
    options.doorbell = std::move(doorbell);
    auto opened = mysql::OpenStore(url, options);
    EXPECT_TRUE(opened) << opened.error().message;
    return std::move(*opened);
  }
  std::unique_ptr<SqlConnection> Connect() const {
    return std::make_unique<SqlConnection>(database_.url(), database_.password_file());
  }

 private:
  static std::vector<std::string> Options(const std::vector<std::string>& more) {
    std::vector<std::string> options{"--log-bin=bin", "--server-id=1"};
    options.insert(options.end(), more.begin(), more.end());
    return options;
  }

  PrivateMariadb server_;
  TestDatabase database_;
  std::string password_file_;
};

}  // namespace millrace::engine
