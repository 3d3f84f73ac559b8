#include "tests/support/private_mariadb.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include "framework/base/random.h"
#include "tests/support/die.h"
#include "tests/support/free_ports.h"
#include "tests/support/sql_connection.h"

namespace millrace::engine {
namespace {

namespace fs = std::filesystem;

int Shell(const std::string& command) { return std::system(command.c_str()); }

std::string UserOption() { return geteuid() == 0 ? " --user=root" : ""; }

// Making a data folder takes seconds, copying one does not: it is made once for a user and reused.
std::string TemplateFolder() {
  const std::string base =
      fs::temp_directory_path().string() + "/millrace-mariadb-" + std::to_string(geteuid());
  fs::create_directories(base);
  fs::permissions(base, fs::perms::owner_all);
  const int lock = open((base + "/lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  if (lock < 0 || flock(lock, LOCK_EX) != 0) Die("can't lock " + base);
  const std::string ready = base + "/data-1";
  if (!fs::exists(ready)) {
    const std::string making = base + "/making";
    fs::remove_all(making);
    if (Shell("mariadb-install-db --no-defaults --auth-root-authentication-method=normal --skip-test-db" +
              UserOption() + " --datadir=" + making + " >" + base + "/log 2>&1") != 0) {
      Die("mariadb-install-db failed, see " + base + "/log; install mariadb-server-core");
    }
    fs::rename(making, ready);
  }
  close(lock);
  return ready;
}

StoreUrl LoopbackUrl(std::uint16_t port) {
  StoreUrl url;
  url.kind = StoreUrl::Kind::Mysql;
  url.user = "millrace";
  url.host = "127.0.0.1";
  url.port = port;
  return url;
}

}  // namespace

PrivateMariadb::PrivateMariadb(std::vector<std::string> options) : options_(std::move(options)) {
  char path[] = "/tmp/millrace-db-XXXXXX";
  if (mkdtemp(path) == nullptr) Die("no temporary folder");
  folder_ = path;
  password_file_ = folder_ + "/password";
  CopyTemplate();
  port_ = FreePorts(1).front();
  {
    std::ofstream file(password_file_);
    fs::permissions(password_file_, fs::perms::owner_read | fs::perms::owner_write);
    file << Random::FromSystem().Hex(16) << "\n";
  }
  Start();
  if (IsMariadb() == (std::getenv("MILLRACE_MYSQL_ROOT") != nullptr))  // which scripts/with-mysql sets
    Die("the other kind of server was started: who has changed PATH?");
  const std::string password = ReadPasswordFile(password_file_).value_or("");
  AsRoot(
      "CREATE USER millrace@'127.0.0.1' IDENTIFIED BY '" + password +
      "'; GRANT SELECT,INSERT,UPDATE,DELETE,CREATE,DROP,REFERENCES,INDEX,ALTER,CREATE TEMPORARY TABLES,LOCK "
      "TABLES,EXECUTE,CREATE VIEW,SHOW VIEW,CREATE ROUTINE,ALTER ROUTINE,TRIGGER,EVENT,PROCESS ON *.* TO "
      "millrace@'127.0.0.1'");
}

PrivateMariadb::~PrivateMariadb() {
  Kill();
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void PrivateMariadb::CopyTemplate() {
  if (Shell("cp -r --reflink=auto " + TemplateFolder() + " " + folder_ + "/data") != 0)
    Die("can't copy the data folder");
}

void PrivateMariadb::Start() {
  const std::vector<std::string> options = {
      "mariadbd", "--no-defaults", "--datadir=" + folder_ + "/data", "--socket=" + folder_ + "/socket",
      "--port=" + std::to_string(port_), "--bind-address=127.0.0.1", "--pid-file=" + folder_ + "/pid",
      "--log-error=" + folder_ + "/log", "--innodb-flush-log-at-trx-commit=1",
      "--innodb-buffer-pool-size=256M", "--innodb-log-file-size=256M", "--performance-schema=OFF",
      "--skip-name-resolve", "--max-connections=200",
      // A server that starts removes what it takes for its own of old in there.
      "--tmpdir=" + folder_,
      // Not the server's default, so that a session which leans on it shows.
      "--default-time-zone=+02:00"};
  std::vector<std::string> words = options;
  words.insert(words.end(), options_.begin(), options_.end());
  if (geteuid() == 0) words.push_back("--user=root");
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    // Nothing is left running when the test dies, however it dies.
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    const int null = open("/dev/null", O_RDWR);
    dup2(null, 0);
    dup2(null, 1);
    dup2(null, 2);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (Shell("mariadb-admin --no-defaults --socket=" + folder_ + "/socket -u root ping >/dev/null 2>&1") !=
         0) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_ || std::chrono::steady_clock::now() > deadline) {
      Shell("tail -20 " + folder_ + "/log >&2");
      Die("mariadbd did not start");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
}

void PrivateMariadb::Reap() {
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void PrivateMariadb::Stop() {
  if (pid_ > 0) kill(pid_, SIGTERM);
  Reap();
}

void PrivateMariadb::Kill() {
  if (pid_ > 0) kill(pid_, SIGKILL);
  Reap();
}

void PrivateMariadb::Pause() {
  kill(pid_, SIGSTOP);
  waitpid(pid_, nullptr, WUNTRACED);
}
void PrivateMariadb::Resume() { kill(pid_, SIGCONT); }

std::string PrivateMariadb::AsRoot(const std::string& sql) const {
  const std::string script = folder_ + "/script.sql";
  {
    std::ofstream file(script);
    fs::permissions(script, fs::perms::owner_read | fs::perms::owner_write);
    file << sql;
  }
  const std::string command =
      "mariadb --no-defaults -N -B --socket=" + folder_ + "/socket -u root <" + script + " 2>&1";
  FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) Die("can't run the mariadb client");
  std::string output;
  char buffer[4096];
  for (std::size_t got = 0; (got = fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, got);
  if (pclose(pipe) != 0) Die("SQL as root failed: " + output);
  return output;
}

bool PrivateMariadb::IsMariadb() const {
  return AsRoot("SELECT VERSION()").find("MariaDB") != std::string::npos;
}

TestServer ServerOf(const PrivateMariadb& server) {
  return {LoopbackUrl(server.port()), server.password_file()};
}

const TestServer& SharedServer() {
  static const TestServer shared = [] {
    if (const char* url = std::getenv("MILLRACE_TEST_MYSQL_URL")) {
      auto parsed = ParseStoreUrl(url);
      if (!parsed)
        parsed = ParseStoreUrl(std::string(url) + "/unused");  // the tests make databases of their own
      if (!parsed) Die(parsed.error().message);
      const char* file = std::getenv("MILLRACE_TEST_MYSQL_PASSWORD_FILE");
      parsed->database.clear();
      return TestServer{*parsed, file == nullptr ? "" : file};
    }
    static PrivateMariadb own;

    return ServerOf(own);
  }();
  return shared;
}

TestDatabase::TestDatabase() : TestDatabase(SharedServer()) {}

TestDatabase::TestDatabase(const TestServer& server) : server_(server), url_(server.url) {
  url_.database = "millrace_test_" + Random::FromSystem().Hex(10);
  SqlConnection(server_.url, server_.password_file).Ask("CREATE DATABASE " + url_.database);
}

TestDatabase::~TestDatabase() {
  SqlConnection connection(server_.url, server_.password_file);
  (void)connection.Run("DROP DATABASE " + url_.database);
}

}  // namespace millrace::engine
