#include "framework/store/mysql/connection_pool.h"

#include <cppconn/connection.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace millrace::engine::mysql {
namespace {

// Two sessions that met by chance leave a second connection behind: closed when it was not needed for long.
constexpr Micros kSpare = std::chrono::seconds(2);

// The server is about to close it, which would make the next write's outcome unknown.
bool TooOld(const PooledConnection& one, BootTime now) { return now - one.last_use > one.silence / 2; }

}  // namespace

ConnectionPool::ConnectionPool(std::size_t limit) : limit_(limit) {}
ConnectionPool::~ConnectionPool() = default;

std::optional<PooledConnection> ConnectionPool::Borrow(Micros patience) {
  std::vector<PooledConnection> stale;  // closed when the lock is free
  const BootTime deadline = BootClock::now() + patience;
  MutexLock lock(mutex_);
  while (lent_ >= limit_) {
    const Micros left = deadline - BootClock::now();
    if (left <= Micros(0)) return std::nullopt;
    returned_.WaitFor(mutex_, left);
  }
  ++lent_;
  PooledConnection lent;
  if (idle_.empty()) return lent;
  lent = std::move(idle_.back());
  idle_.pop_back();
  const BootTime now = BootClock::now();
  const auto spare = std::find_if(idle_.begin(), idle_.end(), [&](const PooledConnection& one) {
    return now - one.last_use <= kSpare && !TooOld(one, now);
  });
  std::move(idle_.begin(), spare, std::back_inserter(stale));
  idle_.erase(idle_.begin(), spare);
  if (TooOld(lent, now)) std::swap(lent, stale.emplace_back());
  return lent;
}

void ConnectionPool::Return(PooledConnection back) {
  std::unique_ptr<::sql::Connection> forgotten;  // closed when the lock is free
  MutexLock lock(mutex_);
  --lent_;
  if (back.generation != generation()) {
    forgotten = std::move(back.connection);
  } else if (back.connection) {
    idle_.push_back(std::move(back));
  }
  returned_.NotifyOne();
}

void ConnectionPool::Forget() {
  std::vector<PooledConnection> idle;  // closed when the lock is free
  MutexLock lock(mutex_);
  generation_.fetch_add(1, std::memory_order_relaxed);
  idle.swap(idle_);
}

}  // namespace millrace::engine::mysql
