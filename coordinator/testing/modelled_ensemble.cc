#include "coordinator/testing/modelled_ensemble.h"

#include <algorithm>

namespace millrace::engine {

ModelledEnsemble::ModelledEnsemble(Timeline& timeline) : timeline_(timeline) {}

bool ModelledEnsemble::HasQuorum() const {
  const auto up = std::count_if(servers_.begin(), servers_.end(), [](const Server& s) { return s.up; });
  return static_cast<std::size_t>(up) > kServers / 2;
}

void ModelledEnsemble::StopServer(std::size_t server) {
  servers_[server].up = false;
  well_since_ = timeline_.Now();
  const bool quorum = HasQuorum();
  std::vector<std::uint64_t> closed;
  for (const auto& [id, connection] : connections_) {
    if (connection.server == server || !quorum) closed.push_back(id);
  }
  for (const std::uint64_t id : closed) Close(id);
}

void ModelledEnsemble::StartServer(std::size_t server) {
  if (servers_[server].up) return;
  const bool had_quorum = HasQuorum();
  servers_[server].up = true;
  well_since_ = timeline_.Now();
  servers_[server].node_watches.clear();
  servers_[server].child_watches.clear();
  ApplyUpTo(server, log_.size());
  if (had_quorum || !HasQuorum()) return;
  // A new leader of the ensemble gives every session its whole time-out again.
  for (auto& [id, session] : sessions_) {
    session.heard = timeline_.Now();
    WatchExpiry(id, session.heard + session.timeout);
  }
}

void ModelledEnsemble::SetLag(std::size_t server, Micros longest) {
  well_since_ = std::max(timeline_.Now(), servers_[server].last_apply);
  servers_[server].longest_lag = longest;
}

BootTime ModelledEnsemble::WellSince() const {
  const bool well = std::all_of(servers_.begin(), servers_.end(),
                                [](const Server& s) { return s.up && s.longest_lag <= kKeepsUp; });
  return well ? well_since_ : timeline_.Now();
}

BootTime ModelledEnsemble::MadeAt(const std::string& path) const {
  const auto node = head_.nodes().find(path);
  if (node == head_.nodes().end()) return timeline_.Now();
  return log_.at(static_cast<std::size_t>(node->second.created) - 1).at;
}

std::uint64_t ModelledEnsemble::Connect(std::size_t server, TreePeer& peer, Strand& strand,
                                        const TreeLink& link) {
  const std::uint64_t id = next_connection_++;
  connections_[id] = {server, &peer, &strand, strand.life, &link};
  return id;
}

Micros ModelledEnsemble::DelayOn(const TreeLink& link) {
  return link.least + Micros(static_cast<std::int64_t>(timeline_.random().Below(link.slowest.count())));
}

void ModelledEnsemble::Send(std::uint64_t id, ClientMessage message) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  connection.lost = connection.lost || !connection.link->to_server;
  if (connection.lost) return;
  const Micros delay = DelayOn(*connection.link);
  connection.next_arrival = std::max(connection.next_arrival, timeline_.Now() + delay);
  timeline_.After(connection.next_arrival - timeline_.Now(),
                  [this, id, message = std::move(message)] { Arrive(id, message); });
}

void ModelledEnsemble::Arrive(std::uint64_t id, const ClientMessage& message) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  if (!servers_[connection.server].up || !HasQuorum()) {
    Close(id);
    return;
  }
  if (message.kind == ClientMessage::Kind::Hello) {
    Welcome(id, connection, message);
    return;
  }
  const auto session = sessions_.find(connection.session);
  if (session == sessions_.end() || session->second.connection != id) {
    Close(id);  // over, or moved to another connection: nothing more is taken from this one
    return;
  }
  session->second.heard = timeline_.Now();
  connection.inbox.push_back(message);
  if (connection.inbox.size() == 1) TakeUp(id);
}

// One request of a session after another: the next when the server has what the one before it wrote.
void ModelledEnsemble::TakeUp(std::uint64_t id) {
  while (true) {
    const auto found = connections_.find(id);
    if (found == connections_.end() || found->second.inbox.empty()) return;
    Connection& connection = found->second;
    const auto session = sessions_.find(connection.session);
    if (session == sessions_.end() || session->second.connection != id) {
      Close(id);
      return;
    }
    if (session->second.busy_until >= timeline_.Now()) {
      timeline_.After(session->second.busy_until + Micros(1) - timeline_.Now(), [this, id] { TakeUp(id); });
      return;
    }
    const ClientMessage message = std::move(connection.inbox.front());
    connection.inbox.pop_front();
    switch (message.kind) {
      case ClientMessage::Kind::Hello:
        break;
      case ClientMessage::Kind::Ping:
        Deliver(id, {ServerMessage::Kind::Pong});
        break;
      case ClientMessage::Kind::Request:
        Perform(id, connection, session->second, message.request);
        break;
      case ClientMessage::Kind::Bye:
        EndSession(session->first);
        break;
    }
  }
}

void ModelledEnsemble::Welcome(std::uint64_t id, Connection& connection, const ClientMessage& hello) {
  if (static_cast<std::int64_t>(servers_[connection.server].applied) < hello.seen) {
    Close(id);  // the client has seen more than this server has
    return;
  }
  std::int64_t session = hello.session;
  if (session == 0) {
    session = next_session_++;
    sessions_[session].timeout = hello.timeout;
    WatchExpiry(session, timeline_.Now() + hello.timeout);
  } else if (!sessions_.contains(session)) {
    Deliver(id, {ServerMessage::Kind::Expired});
    return;
  }
  Session& entry = sessions_[session];
  entry.heard = timeline_.Now();
  entry.connection = id;
  connection.session = session;
  // As the real adapter has it: what is read is no older than the connection.
  entry.busy_until = std::max(servers_[connection.server].last_apply, timeline_.Now());
  timeline_.After(entry.busy_until - timeline_.Now(), [this, id, session] {
    Deliver(id, {.kind = ServerMessage::Kind::Welcome, .session = session});
  });
}

void ModelledEnsemble::Perform(std::uint64_t id, Connection& connection, Session& session,
                               const TreeRequest& request) {
  if (request.kind == TreeRequest::Kind::Write) {
    Write(id, connection, session, request);
    return;
  }
  Server& server = servers_[connection.server];
  TreeReply reply = server.replica.Read(request);
  const bool list = request.kind == TreeRequest::Kind::List;
  const bool there = reply.status == TreeStatus::Ok;
  if (request.watch && (there || reply.status == TreeStatus::NotFound)) {
    (list && there ? server.child_watches : server.node_watches)[request.path].insert(id);
  }
  Deliver(id, {.kind = ServerMessage::Kind::Reply, .reply = std::move(reply)});
}

void ModelledEnsemble::Write(std::uint64_t id, Connection& connection, Session& session,
                             const TreeRequest& request) {
  TreeChanges changes;
  TreeReply reply{.status = TreeStatus::Invalid};
  if (BytesOf(request.writes) <= request.most_bytes) {
    reply =
        head_.Apply(request.writes, connection.session, static_cast<std::int64_t>(log_.size()) + 1, changes);
  }
  if (reply.status != TreeStatus::Ok) {
    Deliver(id, {.kind = ServerMessage::Kind::Reply, .reply = std::move(reply)});
    return;
  }
  session.busy_until = Commit({request.writes, connection.session}, changes, connection.server);
  timeline_.After(session.busy_until - timeline_.Now(),
                  [this, id, reply] { Deliver(id, {.kind = ServerMessage::Kind::Reply, .reply = reply}); });
}

TreeReply ModelledEnsemble::WriteNow(const std::vector<TreeWrite>& writes) {
  TreeChanges changes;
  TreeReply reply;
  if (!HasQuorum()) return reply;
  reply = head_.Apply(writes, 0, static_cast<std::int64_t>(log_.size()) + 1, changes);
  if (reply.status == TreeStatus::Ok) Commit({writes, 0}, changes, 0);
  return reply;
}

// When the entry will have reached the copy of `server`.
BootTime ModelledEnsemble::Commit(Entry entry, const TreeChanges& changes, std::size_t server) {
  const std::int64_t session = entry.session;
  entry.at = timeline_.Now();
  log_.push_back(std::move(entry));
  if (observer_) observer_(changes, session);
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    Server& each = servers_[i];
    const Micros lag(static_cast<std::int64_t>(timeline_.random().Below(each.longest_lag.count() + 1)));
    each.last_apply = std::max(each.last_apply, timeline_.Now() + lag);
    timeline_.After(each.last_apply - timeline_.Now(),
                    [this, i, count = log_.size()] { ApplyUpTo(i, count); });
  }
  return servers_[server].last_apply;
}

void ModelledEnsemble::ApplyUpTo(std::size_t index, std::size_t count) {
  Server& server = servers_[index];
  if (!server.up) return;
  while (server.applied < count) {
    const Entry& entry = log_[server.applied++];
    TreeChanges changes;
    if (entry.writes.empty()) {
      server.replica.RemoveOwned(entry.session, changes);
    } else {
      server.replica.Apply(entry.writes, entry.session, static_cast<std::int64_t>(server.applied), changes);
    }
    Fire(server, changes);
  }
}

void ModelledEnsemble::Fire(Server& server, const TreeChanges& changes) {
  for (const std::string& path : changes.nodes) {
    if (auto watchers = server.node_watches.extract(path)) Tell(std::move(watchers.mapped()), path);
    if (server.replica.nodes().contains(path)) continue;
    if (auto watchers = server.child_watches.extract(path)) Tell(std::move(watchers.mapped()), path);
  }
  for (const std::string& path : changes.parents) {
    if (auto watchers = server.child_watches.extract(path)) Tell(std::move(watchers.mapped()), path);
  }
}

void ModelledEnsemble::Tell(std::set<std::uint64_t> connections, const std::string& path) {
  for (const std::uint64_t id : connections) {
    const auto connection = connections_.find(id);
    if (connection != connections_.end() && !connection->second.link->news) continue;
    Deliver(id, {.kind = ServerMessage::Kind::Changed, .path = path});
  }
}

void ModelledEnsemble::Deliver(std::uint64_t id, ServerMessage message) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = found->second;
  connection.lost = connection.lost || !connection.link->to_client;
  if (connection.lost || connection.strand->life != connection.life) return;
  message.connection = id;
  message.seen = static_cast<std::int64_t>(servers_[connection.server].applied);
  const Micros delay = DelayOn(*connection.link);
  connection.next_delivery = std::max(connection.next_delivery, timeline_.Now() + delay);
  timeline_.After(connection.next_delivery - timeline_.Now(), connection.strand,
                  [peer = connection.peer, message = std::move(message)] { peer->Receive(message); });
}

void ModelledEnsemble::Close(std::uint64_t id) {
  Deliver(id, {ServerMessage::Kind::Closed});
  connections_.erase(id);
}

void ModelledEnsemble::ExpireSession(std::int64_t session) {
  if (sessions_.contains(session)) EndSession(session);
}

void ModelledEnsemble::EndSession(std::int64_t session) {
  const std::uint64_t connection = sessions_.at(session).connection;
  sessions_.erase(session);
  TreeChanges changes;
  head_.RemoveOwned(session, changes);
  Commit({{}, session}, changes, 0);
  Close(connection);
}

void ModelledEnsemble::WatchExpiry(std::int64_t id, BootTime when) {
  timeline_.After(when - timeline_.Now(), [this, id] {
    const auto session = sessions_.find(id);
    if (session == sessions_.end() || !HasQuorum()) return;  // judged anew once there is a quorum
    const BootTime end = session->second.heard + session->second.timeout;
    if (timeline_.Now() < end) {
      WatchExpiry(id, end);
    } else {
      EndSession(id);
    }
  });
}

}  // namespace millrace::engine
