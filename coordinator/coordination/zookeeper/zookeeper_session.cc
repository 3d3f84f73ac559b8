#include "coordinator/coordination/zookeeper/zookeeper_session.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "coordinator/coordination/zookeeper/replies.h"
#include "framework/base/log.h"

namespace millrace::engine {
namespace {

using State = ZookeeperClient::State;

// How long to leave it after a session could not be opened, or ended right away.
constexpr Micros kReopenPause = std::chrono::seconds(1);

// What is wrong with a request, or nothing.
std::string Fault(const TreeRequest& request) {
  // Of a write that the client library refuses for its path it loses what it has made of it by then.
  constexpr const char* kNoPath = "a path begins with '/' and has no empty part";
  if (request.kind != TreeRequest::Kind::Write) return IsPath(request.path) ? "" : kNoPath;
  if (request.writes.empty()) return "there is nothing to write";
  for (const TreeWrite& write : request.writes) {
    if (!IsPath(write.path)) return kNoPath;
  }
  if (request.writes.size() > kMostWrites) return "more than " + std::to_string(kMostWrites) + " writes";
  if (BytesOf(request.writes) > request.most_bytes)
    return "more than " + std::to_string(request.most_bytes) + " bytes";
  return "";
}

ZookeeperClient::Sent Send(ZookeeperClient& client, const TreeRequest& request) {
  switch (request.kind) {
    case TreeRequest::Kind::Get:
      return client.Get(request.path, request.watch);
    case TreeRequest::Kind::List:
      return client.List(request.path, request.watch);
    case TreeRequest::Kind::Write:
      break;
  }
  return client.Write(request.writes);
}

bool MakesTheTree(const TreeRequest& request) {
  const TreeWrite& first = request.writes.front();
  return first.kind == TreeWrite::Kind::Create && first.path == "/";
}

// A reply whose message says what and where, for logs.
TreeReply Told(const TreeRequest& request, TreeReply reply) {
  if (reply.status == TreeStatus::Ok) return reply;
  const bool refused = reply.status != TreeStatus::Lost && reply.status != TreeStatus::Expired;
  const bool one_write = refused && request.kind == TreeRequest::Kind::Write;
  const std::string what = one_write ? Describe(request.writes[reply.failed]) : Describe(request);
  reply.message = what + ": " + (reply.message.empty() ? ToString(reply.status) : reply.message);
  return reply;
}

}  // namespace

ZookeeperSession::ZookeeperSession(const ZookeeperClientOptions& options) : options_(options) { Reopen(); }

std::vector<TreeReply> ZookeeperSession::PerformAll(const std::vector<TreeRequest>& requests) {
  const std::optional<TreeReply> unusable = Unusable();
  const BootTime deadline = BootClock::now() + Timeout();
  std::vector<std::optional<ZookeeperClient::Sent>> sent(requests.size());
  std::vector<TreeReply> replies(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (const std::string fault = Fault(requests[i]); !fault.empty()) {
      replies[i] = {.status = TreeStatus::Invalid, .message = Describe(requests[i]) + ": " + fault};
    } else if (unusable) {
      replies[i] = Told(requests[i], *unusable);
    } else {
      sent[i] = Send(*client_, requests[i]);
    }
  }
  // A server answers in order: whoever waits for the last wakes once.
  for (std::size_t i = requests.size(); i-- > 0;) {
    if (sent[i]) replies[i] = Told(requests[i], Await(requests[i], *sent[i], deadline));
  }
  return replies;
}

std::vector<ZookeeperSession::Access> ZookeeperSession::ReadAccess(const std::vector<std::string>& paths) {
  const std::optional<TreeReply> unusable = Unusable();
  std::vector<ZookeeperClient::Sent> sent;
  const BootTime deadline = BootClock::now() + Timeout();
  if (!unusable) {
    for (const std::string& path : paths) sent.push_back(client_->ReadAccess(path));
  }
  std::vector<Access> all(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    Access& access = all[i];
    access.reply = unusable ? *unusable : client_->AwaitAccess(sent[i], access.open, deadline);
    if (access.reply.status != TreeStatus::Ok) access.reply.message = "read the access list of " + paths[i];
  }
  return all;
}

std::vector<TreeReply> ZookeeperSession::CloseAccess(const std::vector<std::string>& paths) {
  const std::optional<TreeReply> unusable = Unusable();
  std::vector<ZookeeperClient::Sent> sent;
  const BootTime deadline = BootClock::now() + Timeout();
  if (!unusable) {
    for (const std::string& path : paths) sent.push_back(client_->CloseAccess(path));
  }
  std::vector<TreeReply> replies(paths.size());
  for (std::size_t i = 0; i < paths.size(); ++i) {
    replies[i] = unusable ? *unusable : client_->Await(sent[i], deadline);
    if (replies[i].status != TreeStatus::Ok) replies[i].message = "set the access list of " + paths[i];
  }
  return replies;
}

std::optional<TreeReply> ZookeeperSession::Unusable() const {
  if (client_ == nullptr) return TreeReply{.message = "no session yet"};
  if (client_->state() == State::Ended) return TreeReply{.status = TreeStatus::Expired};
  // On a new connection nothing is asked before the owner has heard of it.
  if (!client_->caught_up()) return TreeReply{.status = TreeStatus::Lost, .message = "not connected"};
  return std::nullopt;
}

TreeReply ZookeeperSession::Await(const TreeRequest& request, const ZookeeperClient::Sent& sent,
                                  BootTime deadline) {
  TreeReply reply = client_->Await(sent, deadline);
  if (request.kind == TreeRequest::Kind::Write) {
    if (reply.status != TreeStatus::NotFound || !MakesTheTree(request)) return reply;
    client_->MakeParent(deadline);  // whoever deleted the tree may have deleted more
    return client_->Await(client_->Write(request.writes), deadline);
  }
  while (request.watch && reply.status == TreeStatus::NotFound) {
    // A read of a missing node leaves no watch; a question for its existence does.
    const TreeReply exists = client_->Await(client_->WatchExistence(request.path), deadline);
    reply = exists.status == TreeStatus::Ok ? client_->Await(Send(*client_, request), deadline) : exists;
    if (exists.status != TreeStatus::Ok) break;
  }
  // A read that slipped onto a new connection may be older than what was seen before.
  if (!client_->caught_up() && reply.status != TreeStatus::Expired) {
    return {.status = TreeStatus::Lost, .message = "the connection changed"};
  }
  return reply;
}

std::optional<TreeEvent> ZookeeperSession::WaitEvent(Micros limit) {
  const BootTime start = BootClock::now();
  while (true) {
    const BootTime now = BootClock::now();
    const Micros left = std::max(limit - (now - start), Micros(0));
    EventQueue::Taken taken = events_.Take(std::min(left, Tend(now)));
    if (taken.event) {
      Heard(*taken.event);
      return std::move(taken.event);
    }
    if (taken.interrupted || BootClock::now() - start >= limit) return std::nullopt;
  }
}

void ZookeeperSession::Heard(const TreeEvent& event) {
  Note(event);
  if (event.kind == TreeEvent::Kind::Expired) Reopen();
  if (event.kind == TreeEvent::Kind::Connected && client_ != nullptr) {
    // What was lost with the last connection may still be on its way to this server.
    (void)client_->Sync(BootClock::now() + client_->timeout());
  }
}

Micros ZookeeperSession::Tend(BootTime now) {
  if (client_ == nullptr) {
    const Micros pause = kReopenPause - (now - opened_);
    if (pause > Micros(0)) return pause;
    Reopen(key_);
    return kReopenPause;
  }
  if (client_->state() == State::Connecting) return Hasten(*client_, now);
  // The library's own pings tell nothing: so that the last contact is no older than a third of the time-out.
  const Micros interval = client_->timeout() / 3;
  if (now - probed_ >= interval && client_->state() == State::Connected) {
    probed_ = now;
    client_->Probe();
  }
  return std::max(interval - (now - probed_), interval / 8);
}

// A server that is just starting takes a connection and forgets it, and the library waits for it for two
// thirds of a session's time. Another client goes on with the session sooner. (A reply in the moment of the
// close would let the library close the session, too: that is told as an expiry.) The library looks up the
// servers' names before it connects, and has done so once when it was opened: where that takes long it must
// not be closed each time before it has come to connecting.
Micros ZookeeperSession::Hasten(const ZookeeperClient& client, BootTime now) {
  const Micros patience = std::max(client.timeout() / 4, kReopenPause) + opening_took_;
  const Micros left = patience - (now - std::max(client.connecting_since(), opened_));
  if (left > Micros(0)) return left;
  Reopen(client.key());
  return patience;
}

void ZookeeperSession::Reopen(const ZookeeperSessionKey& key) {
  std::unique_ptr<ZookeeperClient> old;
  {
    MutexLock lock(mutex_);
    key_ = key;
    old.swap(client_);
  }
  old.reset();
  const BootTime now = BootClock::now();
  const bool again_too_soon = now - opened_ < kReopenPause;
  opened_ = now;
  if (again_too_soon) return;  // Tend does it in a while
  auto opened = ZookeeperClient::Open(options_, events_, key_);
  opened_ = BootClock::now();
  opening_took_ = opened_ - now;
  if (!opened) {
    if (!complained_) LogWarning("ZooKeeper session not opened", {{"error", opened.error().message}});
    complained_ = true;
    return;
  }
  complained_ = false;
  MutexLock lock(mutex_);
  client_ = std::move(*opened);
}

void ZookeeperSession::Note(const TreeEvent& event) const {
  switch (event.kind) {
    case TreeEvent::Kind::Connected:
      return LogInfo("ZooKeeper connected", {{"servers", options_.hosts}, {"session", event.session}});
    case TreeEvent::Kind::Disconnected:
      return LogWarning("ZooKeeper connection lost", {{"servers", options_.hosts}});
    case TreeEvent::Kind::Expired:
      return LogWarning("ZooKeeper session expired", {{"servers", options_.hosts}});
    case TreeEvent::Kind::Changed:
      return;
  }
}

BootTime ZookeeperSession::LastContact() const {
  MutexLock lock(mutex_);
  return client_ == nullptr ? key_.last_contact : client_->last_contact();
}

Micros ZookeeperSession::Timeout() const {
  MutexLock lock(mutex_);
  return client_ == nullptr ? options_.session_timeout : client_->timeout();
}

}  // namespace millrace::engine
