// Follows the server's binary log as a replica would. The C interface of the client library is used here
// alone: the connector has no way to it.
#include <mysql.h>  // before what builds on it
#include <sys/socket.h>

#include <mariadb_rpl.h>

#include <cstdio>
#include <set>
#include <utility>

#include "framework/base/mutex.h"
#include "framework/base/random.h"
#include "framework/doorbell/binlog_reader.h"
#include "framework/doorbell/listening.h"
#include "framework/store/mysql/sessions.h"

namespace millrace::engine::mysql {
namespace {

constexpr unsigned kConnectSeconds = 2;
constexpr unsigned kSilenceSeconds =
    1;  // between two words of the server; it sends a heartbeat thrice in that
constexpr const char* kHeartbeatNanoseconds = "300000000";
constexpr unsigned long kLongestPacket = 64UL << 20;
constexpr int kNoSuchStatement = 1064;
constexpr int kNotReplica = 1220;
constexpr int kServerLost = 2013;

struct Closes {
  void operator()(MYSQL* connection) const { mysql_close(connection); }
  void operator()(MARIADB_RPL* log) const { mariadb_rpl_close(log); }
  void operator()(MARIADB_RPL_EVENT* event) const { mariadb_free_rpl_event(event); }
};

using Cells = std::vector<std::string>;  // of one row; NULL is empty

// From the upper half, where people number nobody.
std::uint32_t DrawServerId(Random& random) {
  return static_cast<std::uint32_t>(0x80000000U | random.Below(0x7FFFFFFFU));
}

std::string DrawUuid(Random& random) {
  const std::string hex = random.Hex(16) + random.Hex(16);
  return hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-4" + hex.substr(13, 3) + "-a" + hex.substr(17, 3) +
         "-" + hex.substr(20, 12);
}

class BinlogFeed final : public ChangeFeed {
 public:
  BinlogFeed(Endpoint endpoint, IsWatched watched, Returns returns, HeardWritesPtr writes)
      : endpoint_(std::move(endpoint)),
        watched_(std::move(watched)),
        returns_(std::move(returns)),
        writes_(std::move(writes)),
        where_(endpoint_.Describe()),
        random_(Random::FromSystem()),
        uuid_(DrawUuid(random_)),
        server_id_(DrawServerId(random_)) {}
  ~BinlogFeed() override { Close(); }

  Status Open() override {
    Close();
    returns_seen_ = returns_->load();
    BOOST_OUTCOME_TRYV(Connect());
    Status followed = Follow();
    if (!followed) {
      Close();
    } else {
      writes_->Begin(BootClock::now());
    }
    return followed;
  }

  Result<std::vector<Ring>> Next() override {
    if (!log_) return Fail(ErrorCode::Unavailable, where_ + ": the binary log is not followed");
    const BootTime asked = BootClock::now();
    const std::unique_ptr<MARIADB_RPL_EVENT, Closes> event(mariadb_rpl_fetch(log_.get(), nullptr));
    const BootTime now = BootClock::now();
    if (!event) return Fail(Ended(now - asked));
    if (event->raw_data == nullptr || event->raw_data_ofs > event->raw_data_size) {
      Close();
      return Fail(ErrorCode::Unavailable, where_ + ": an event of the binary log can't be read");
    }
    const ByteSpan bytes(event->raw_data + event->raw_data_ofs, event->raw_data_size - event->raw_data_ofs);
    const BinlogReader::Heard heard = reader_->Read(bytes);
    if (heard.wrote) writes_->Write(now);
    if (heard.beat) writes_->Beat();
    if (const auto why = load_.Add(now, bytes.size(), heard.logged_at, heard.caught_up)) {
      Close();
      return Fail(ErrorCode::Conflict, where_ + ": " + *why);
    }
    std::vector<Ring> rings;
    if (heard.ring) rings.push_back(*heard.ring);
    // Some versions of the client library stumble over what comes next: the new file is begun by ourselves.
    // And a server whose place another one has taken may go on for ever, and log nothing that is of use.
    if (heard.rotated || returns_->load() != returns_seen_) {
      BOOST_OUTCOME_TRYV(Open());
      rings.emplace_back();
    }
    return rings;
  }

  void Interrupt() override {
    MutexLock lock(mutex_);
    interrupted_ = true;
    if (socket_ >= 0) shutdown(socket_, SHUT_RDWR);
  }

 private:
  void Close() {
    writes_->End();
    log_.reset();
    {
      MutexLock lock(mutex_);
      socket_ = -1;
    }
    connection_.reset();
  }

  Status Connect() {
    std::string password;
    if (!endpoint_.options.password_file.empty()) {
      auto read = ReadPasswordFile(endpoint_.options.password_file);
      if (!read) return Fail(ErrorCode::Denied, read.error().message);
      password = std::move(*read);
    }
    PrepareClient();
    connection_.reset(mysql_init(nullptr));
    if (!connection_) return Fail(ErrorCode::Unavailable, where_ + ": no memory for a connection");
    const unsigned protocol = MYSQL_PROTOCOL_TCP;  // the library takes `localhost` for a socket file
    mysql_optionsv(connection_.get(), MYSQL_OPT_PROTOCOL, &protocol);
    mysql_optionsv(connection_.get(), MYSQL_OPT_CONNECT_TIMEOUT, &kConnectSeconds);
    mysql_optionsv(connection_.get(), MYSQL_OPT_READ_TIMEOUT, &kSilenceSeconds);
    mysql_optionsv(connection_.get(), MYSQL_OPT_WRITE_TIMEOUT, &kSilenceSeconds);
    mysql_optionsv(connection_.get(), MYSQL_OPT_MAX_ALLOWED_PACKET, &kLongestPacket);
    const std::string& authority = endpoint_.url.tls_ca;
    if (!authority.empty()) {
      const my_bool verify = 1;
      mysql_ssl_set(connection_.get(), nullptr, nullptr, authority.c_str(), nullptr, nullptr);
      mysql_optionsv(connection_.get(), MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verify);
    }
    if (mysql_real_connect(connection_.get(), endpoint_.url.host.c_str(), endpoint_.url.user.c_str(),
                           password.c_str(), nullptr, endpoint_.url.port, nullptr, 0) == nullptr) {
      return Fail(Wrong(Purpose::Connect));
    }
    if (!authority.empty() && mysql_get_ssl_cipher(connection_.get()) == nullptr) {
      return Fail(ErrorCode::Denied,
                  where_ + ": the connection is not encrypted although the store URL names a tls_ca");
    }
    MutexLock lock(mutex_);
    socket_ = static_cast<int>(mysql_get_socket(connection_.get()));
    if (interrupted_) return Fail(ErrorCode::Cancelled, "it is stopped");
    return {};
  }

  // Begins where the log ends now.
  Status Follow() {
    BOOST_OUTCOME_TRY(server, Ask("SELECT UNIX_TIMESTAMP(), @@server_id, @@lower_case_table_names"));
    BOOST_OUTCOME_TRY(compression, Ask("SHOW VARIABLES LIKE 'binlog_transaction_compression'"));
    if (!compression.empty() && compression[0].back() == "ON") {
      return Fail(ErrorCode::Invalid,
                  where_ +
                      ": the server compresses whole transactions in its log, which can't be "
                      "read here: set binlog_transaction_compression=OFF, or leave the "
                      "doorbell out");
    }
    BOOST_OUTCOME_TRY(end, EitherOf("SHOW MASTER STATUS", "SHOW BINARY LOG STATUS"));
    if (end.empty() || end[0].size() < 2) {
      return Fail(ErrorCode::Invalid,
                  where_ +
                      ": the server writes no binary log: start it with log_bin, or leave the "
                      "doorbell out");
    }
    BOOST_OUTCOME_TRYV(Introduce(server[0][1]));
    log_.reset(mariadb_rpl_init(connection_.get()));
    if (!log_) return Fail(Wrong());
    const auto begin = static_cast<unsigned long>(std::strtoull(end[0][1].c_str(), nullptr, 10));
    mariadb_rpl_optionsv(log_.get(), MARIADB_RPL_FILENAME, end[0][0].c_str(), end[0][0].size());
    mariadb_rpl_optionsv(log_.get(), MARIADB_RPL_START, begin);
    mariadb_rpl_optionsv(log_.get(), MARIADB_RPL_SERVER_ID, server_id_);
    mariadb_rpl_optionsv(log_.get(), MARIADB_RPL_FLAGS, 0U);
    if (mariadb_rpl_open(log_.get()) != 0) return Fail(Wrong());
    reader_.emplace(endpoint_.url.database, watched_,
                    server[0][2] == "0" ? BinlogReader::Case::Matters : BinlogReader::Case::Ignored);
    load_.Begin(BootClock::now(), std::strtoull(server[0][0].c_str(), nullptr, 10));
    return {};
  }

  // The variables of a session by which a server knows its replicas; each server knows some of them. What
  // would ask for semi-synchronous replication is not among them.
  Status Introduce(const std::string& server_id) {
    std::set<std::string> taken{server_id};
    const auto replicas = EitherOf("SHOW SLAVE HOSTS", "SHOW REPLICAS");
    if (replicas) {  // an account may lack the right to ask
      for (const Cells& row : *replicas) taken.insert(row[0]);
    }
    while (taken.contains(std::to_string(server_id_))) server_id_ = DrawServerId(random_);
    return Tell(
        "SET @master_binlog_checksum=@@global.binlog_checksum, "
        "@source_binlog_checksum=@@global.binlog_checksum, "
        "@mariadb_slave_capability=4, "
        "@master_heartbeat_period=" +
        std::string(kHeartbeatNanoseconds) + ", @source_heartbeat_period=" + kHeartbeatNanoseconds +
        ", @slave_uuid='" + uuid_ + "', @replica_uuid='" + uuid_ + "'");
  }

  Status Tell(const std::string& sql) {
    if (mysql_real_query(connection_.get(), sql.data(), sql.size()) == 0) return {};
    return Fail(Wrong());
  }

  Result<std::vector<Cells>> Ask(const std::string& sql) {
    BOOST_OUTCOME_TRYV(Tell(sql));
    MYSQL_RES* const result = mysql_store_result(connection_.get());
    if (result == nullptr) return Fail(Wrong());
    std::vector<Cells> rows;
    while (const MYSQL_ROW row = mysql_fetch_row(result)) {
      Cells& cells = rows.emplace_back();
      for (unsigned i = 0; i < mysql_num_fields(result); ++i)
        cells.emplace_back(row[i] == nullptr ? "" : row[i]);
    }
    mysql_free_result(result);
    return rows;
  }

  // As older servers and MariaDB call it, or as newer ones do.
  Result<std::vector<Cells>> EitherOf(const std::string& older, const std::string& newer) {
    auto rows = Ask(older);
    return !rows && mysql_errno(connection_.get()) == kNoSuchStatement ? Ask(newer) : std::move(rows);
  }

  Error Wrong(Purpose purpose = Purpose::Read) const {
    const int code = static_cast<int>(mysql_errno(connection_.get()));
    const std::string message = mysql_error(connection_.get());
    if (code == kNoPrivilege || code == kNotReplica) {
      return {ErrorCode::Denied,
              where_ + ": " + endpoint_.url.user +
                  " may not follow the binary log: GRANT it REPLICATION SLAVE and REPLICATION "
                  "CLIENT (MariaDB: BINLOG MONITOR) ON *.*, or leave the doorbell out (error " +
                  std::to_string(code) + ": " + message + ")"};
    }
    return Translate({code, message}, purpose, where_);
  }

  Error Ended(Micros waited) {
    const int code = static_cast<int>(mysql_errno(connection_.get()));
    Error error = Wrong();
    if (code == 0) {
      const std::string why = mariadb_rpl_error(log_.get());
      error = {ErrorCode::Unavailable,
               where_ + ": the server has ended its log" + (why.empty() ? "" : " (" + why + ")")};
    } else if (code == kServerLost && waited >= std::chrono::seconds(kSilenceSeconds)) {
      error = {ErrorCode::Unavailable, where_ + ": the server has been silent for a second"};
    }
    Close();
    return error;
  }

  const Endpoint endpoint_;
  const IsWatched watched_;
  const Returns returns_;
  const HeardWritesPtr writes_;
  std::uint64_t returns_seen_ = 0;  // when the log was opened
  const std::string where_;
  // Who it is to the server, for life.
  Random random_;
  const std::string uuid_;
  std::uint32_t server_id_;
  std::unique_ptr<MYSQL, Closes> connection_;
  std::unique_ptr<MARIADB_RPL, Closes> log_;
  std::optional<BinlogReader> reader_;
  LogLoad load_;
  Mutex mutex_;
  int socket_ MILLRACE_GUARDED_BY(mutex_) = -1;
  bool interrupted_ MILLRACE_GUARDED_BY(mutex_) = false;
};

}  // namespace

std::unique_ptr<ChangeFeed> OpenBinlogFeed(Endpoint endpoint, IsWatched watched, Returns returns,
                                           HeardWritesPtr writes) {
  return std::make_unique<BinlogFeed>(std::move(endpoint), std::move(watched), std::move(returns),
                                      std::move(writes));
}

}  // namespace millrace::engine::mysql
