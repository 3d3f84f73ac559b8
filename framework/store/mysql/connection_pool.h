// The connections of one store that no session holds at the moment. A session borrows one for a statement or
// a transaction, so that a worker has as many as it uses at once and not as many as it has sessions: one
// while it is idle. The last that came back is lent first; the others fall silent and are closed.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/mutex.h"

namespace sql {
class Connection;
}  // namespace sql

namespace millrace::engine::mysql {

struct PooledConnection {
  std::unique_ptr<::sql::Connection> connection;  // null: the borrower has to make one
  Micros silence{0};                              // after which the server closes it
  BootTime last_use{};
  std::uint64_t generation = 0;  // of the pool, when it was made
};

// Thread-safe.
class ConnectionPool {
 public:
  // At most `limit` are lent at once.
  explicit ConnectionPool(std::size_t limit);
  ~ConnectionPool();
  ConnectionPool(const ConnectionPool&) = delete;
  ConnectionPool& operator=(const ConnectionPool&) = delete;

  std::size_t limit() const { return limit_; }
  // Waits up to `patience` for one of the others to come back; nullopt: none did.
  std::optional<PooledConnection> Borrow(Micros patience);
  // Every loan ends here; the connection is null where it was lost.
  void Return(PooledConnection back);
  // Closes all that were made until now, those in use when they come back: the server has gone, or they may
  // lead to one that is behind.
  void Forget();
  // How often that was.
  std::uint64_t generation() const { return generation_.load(std::memory_order_relaxed); }
  // A number for each of its sessions.
  unsigned NumberSession() { return sessions_.fetch_add(1, std::memory_order_relaxed); }

 private:
  const std::size_t limit_;
  std::atomic<unsigned> sessions_{0};
  std::atomic<std::uint64_t> generation_{0};  // changed under the mutex
  Mutex mutex_;
  CondVar returned_;
  std::size_t lent_ MILLRACE_GUARDED_BY(mutex_) = 0;
  std::vector<PooledConnection> idle_ MILLRACE_GUARDED_BY(mutex_);  // the last used at the end
};

}  // namespace millrace::engine::mysql
