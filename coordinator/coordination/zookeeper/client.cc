#include "coordinator/coordination/zookeeper/client.h"

#include <zookeeper/zookeeper.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "coordinator/coordination/zookeeper/pending_request.h"
#include "framework/threads/blocked_signals.h"

namespace millrace::engine {
namespace {

// Nothing of what the library logs is kept, and little of it made: it complains at every attempt to connect,
// in texts that its threads share. What an operator needs to know is logged by the session.
void DropLog(const char*) {}
void Quieten() {
  static const bool once = (zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR), true);
  (void)once;
}

// Host names are looked up where there is no connection, and at no other time. The thread that looks them up
// is the one that sends the pings: a name server that does not answer would end every session, again and
// again.
constexpr int kNotWhileConnected = -1;

}  // namespace

void ZookeeperClient::OnSession(zhandle_t* handle, int type, int state, const char*, void* context) {
  if (type == ZOO_SESSION_EVENT) static_cast<ZookeeperClient*>(context)->SessionChanged(handle, state);
}

Result<std::unique_ptr<ZookeeperClient>> ZookeeperClient::Open(const ZookeeperClientOptions& options,
                                                               EventQueue& events,
                                                               const ZookeeperSessionKey& key) {
  std::unique_ptr<ZookeeperClient> client(new ZookeeperClient(options, events, key));
  clientid_t session{.client_id = key.id, .passwd = {}};
  std::copy(key.password.begin(), key.password.end(), session.passwd);
  const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(options.session_timeout);
  // The library looks up what stands before the last colon as it is.
  std::string servers = options.hosts;
  std::erase_if(servers, [](char c) { return c == '[' || c == ']'; });
  Quieten();
  const BlockedSignals for_the_threads_of_the_library;
  client->handle_ =
      zookeeper_init2(servers.c_str(), OnSession, static_cast<int>(timeout.count()),
                      key.id == 0 ? nullptr : &session, client.get(), ZOO_NO_LOG_CLIENTENV, DropLog);
  if (client->handle_ == nullptr) {
    return Fail(ErrorCode::Unavailable,
                "can't look up " + options.hosts + ": " + std::string(std::strerror(errno)));
  }
  zoo_set_servers_resolution_delay(client->handle_, kNotWhileConnected);
  if (!options.digest.empty()) {
    // Sent at the head of each new connection of this session.
    const int size = static_cast<int>(options.digest.size());
    zoo_add_auth(client->handle_, "digest", options.digest.data(), size, nullptr, nullptr);
  }
  return client;
}

ZookeeperClient::ZookeeperClient(const ZookeeperClientOptions& options, EventQueue& events,
                                 const ZookeeperSessionKey& key)
    : options_(options), events_(events), connecting_since_(BootClock::now()), key_(key) {
  if (key_.id == 0) key_.timeout = options.session_timeout;
}

ZookeeperClient::~ZookeeperClient() {
  if (handle_ != nullptr) zookeeper_close(handle_);
}

ZookeeperClient::State ZookeeperClient::state() const {
  MutexLock lock(mutex_);
  return state_;
}

bool ZookeeperClient::caught_up() const {
  MutexLock lock(mutex_);
  return caught_up_;
}

BootTime ZookeeperClient::connecting_since() const {
  MutexLock lock(mutex_);
  return connecting_since_;
}

ZookeeperSessionKey ZookeeperClient::key() const {
  MutexLock lock(mutex_);
  return key_;
}

BootTime ZookeeperClient::last_contact() const { return key().last_contact; }
Micros ZookeeperClient::timeout() const { return key().timeout; }

void ZookeeperClient::SessionChanged(_zhandle* handle, int state) {
  TreeEvent event{.kind = TreeEvent::Kind::Disconnected};
  State now = State::Connecting;
  if (state == ZOO_CONNECTED_STATE) {
    event.kind = TreeEvent::Kind::Connected;
    event.session = zoo_client_id(handle)->client_id;
    event.timeout = std::chrono::milliseconds(zoo_recv_timeout(handle));
    now = State::Connected;
  } else if (state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE) {
    event.kind = TreeEvent::Kind::Expired;
    now = State::Ended;
  }
  {
    MutexLock lock(mutex_);
    state_ = now;
    caught_up_ = false;
    if (now == State::Connected) {
      key_.id = event.session;
      std::copy_n(zoo_client_id(handle)->passwd, key_.password.size(), key_.password.begin());
      key_.timeout = event.timeout;
      key_.last_contact = std::max(key_.last_contact, connecting_since_);
    } else {
      connecting_since_ = BootClock::now();
    }
  }
  events_.Push(std::move(event));
}

}  // namespace millrace::engine
