// A MariaDB server of a test's own: a free loopback port, a data folder that goes with the object, a user
// `millrace` who may do anything but what SUPER may. Where MILLRACE_TEST_MYSQL_URL is set (and
// MILLRACE_TEST_MYSQL_PASSWORD_FILE), TestDatabase uses that server instead.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "framework/store/url.h"

namespace millrace::engine {

// Not thread-safe. Dies with a message where the server can't be started: there is nothing to test without
// it.
class PrivateMariadb {
 public:
  // `options` are the server's, beside those that every test needs.
  explicit PrivateMariadb(std::vector<std::string> options = {});
  ~PrivateMariadb();
  PrivateMariadb(const PrivateMariadb&) = delete;
  PrivateMariadb& operator=(const PrivateMariadb&) = delete;

  std::uint16_t port() const { return port_; }
  pid_t pid() const { return pid_; }  // -1 while it is stopped
  const std::string& password_file() const { return password_file_; }
  std::string user() const { return "millrace"; }

  void Start();  // returns when it takes connections
  void Stop();   // in good order
  void Kill();   // SIGKILL
  void Pause();  // SIGSTOP; returns when it stands still
  void Resume();

  bool IsMariadb() const;  // not where scripts/with-mysql has put MySQL in its place

  // Runs SQL as root through the server's socket, with the plain client. Returns what it prints.
  std::string AsRoot(const std::string& sql) const;

 private:
  void CopyTemplate();
  void Reap();

  const std::vector<std::string> options_;
  std::string folder_;
  std::string password_file_;
  std::uint16_t port_ = 0;
  pid_t pid_ = -1;
};

// The server that tests share within one process: started at the first use, or the one of the environment.
struct TestServer {
  StoreUrl url;  // without a database
  std::string password_file;
};
const TestServer& SharedServer();

// A fresh database on a server, dropped with the object.
class TestDatabase {
 public:
  TestDatabase();  // on the shared server
  explicit TestDatabase(const TestServer& server);
  ~TestDatabase();
  TestDatabase(const TestDatabase&) = delete;
  TestDatabase& operator=(const TestDatabase&) = delete;

  const StoreUrl& url() const { return url_; }
  const std::string& password_file() const { return server_.password_file; }

 private:
  const TestServer server_;
  StoreUrl url_;
};

// What a producer or an operator would type: one statement by the plain client library; see sql_connection.h.
TestServer ServerOf(const PrivateMariadb& server);

}  // namespace millrace::engine
