#include "coordinator/testing/modelled_client.h"

#include <algorithm>

namespace millrace::engine {
namespace {

constexpr Micros kLostSoon = std::chrono::milliseconds(10);
constexpr Micros kLongestRest = std::chrono::milliseconds(500);

TreeReply Failed(TreeStatus status) {
  TreeReply reply;
  reply.status = status;
  reply.message = ToString(status);
  return reply;
}

}  // namespace

ModelledClient::ModelledClient(Parts parts, std::function<void(const TreeEvent&)> event)
    : parts_(parts), event_(std::move(event)) {
  server_ = parts_.timeline.random().Below(ModelledEnsemble::kServers);
  Rest();
  Tick();
}

void ModelledClient::Rest() {
  state_ = State::Resting;
  const auto rest = parts_.timeline.random().Below(kLongestRest.count());
  parts_.timeline.After(Micros(rest), &parts_.strand, [this] {
    if (state_ == State::Resting) Connect();
  });
}

void ModelledClient::Connect() {
  state_ = State::Connecting;
  began_ = parts_.timeline.Now();
  server_ = (server_ + 1) % ModelledEnsemble::kServers;
  connection_ = parts_.ensemble.Connect(server_, *this, parts_.strand, parts_.links[server_]);
  parts_.ensemble.Send(
      connection_,
      {.kind = ClientMessage::Kind::Hello, .session = session_, .seen = seen_, .timeout = parts_.timeout});
}

// As the real client: it pings each third of the time-out, whatever else it asks, since a read tells nothing
// of its session; and gives a connection up after two thirds without an answer.
void ModelledClient::Tick() {
  if (state_ == State::Closed) return;
  const BootTime now = parts_.timeline.Now();
  const Micros third = parts_.timeout / 3;
  if (state_ == State::Connecting && now - began_ > third) Rest();
  if (state_ == State::Connected && now - heard_ > 2 * third) Drop(TreeStatus::Lost);
  if (state_ == State::Connected && now - pinged_ > third) {
    pinged_ = now;
    Send({.kind = ClientMessage::Kind::Ping}, nullptr);
  }
  parts_.timeline.After(third / 4, &parts_.strand, [this] { Tick(); });
}

void ModelledClient::Send(ClientMessage message, Done done) {
  const BootTime sent = parts_.timeline.Now();
  const bool read = done && message.request.kind != TreeRequest::Kind::Write;
  asked_.push_back({sent, read, std::move(done)});
  parts_.ensemble.Send(connection_, std::move(message));
}

void ModelledClient::Ask(TreeRequest request, Done done) {
  if (state_ == State::Connected) {
    Send({.kind = ClientMessage::Kind::Request, .request = std::move(request)}, std::move(done));
    return;
  }
  parts_.timeline.After(kLostSoon, &parts_.strand,
                        [done = std::move(done)] { done(Failed(TreeStatus::Lost)); });
}

void ModelledClient::Close() {
  if (state_ == State::Connected) parts_.ensemble.Send(connection_, {.kind = ClientMessage::Kind::Bye});
  state_ = State::Closed;
}

void ModelledClient::Answer(const TreeReply& reply) {
  if (asked_.empty()) return;
  const Asked asked = std::move(asked_.front());
  asked_.pop_front();
  if (!asked.read) contact_ = asked.sent;
  if (asked.done) asked.done(reply);
}

void ModelledClient::Drop(TreeStatus status) {
  const bool was_connected = state_ == State::Connected;
  std::deque<Asked> asked;
  asked.swap(asked_);
  Rest();
  if (status == TreeStatus::Expired) {
    session_ = 0;
    event_({TreeEvent::Kind::Expired});
  } else if (was_connected) {
    event_({.kind = TreeEvent::Kind::Disconnected, .session = session_});
  }
  for (const Asked& each : asked) {
    if (each.done) each.done(Failed(status));
  }
}

void ModelledClient::Receive(const ServerMessage& message) {
  if (message.connection != connection_ || state_ == State::Closed || state_ == State::Resting) return;
  heard_ = parts_.timeline.Now();
  seen_ = std::max(seen_, message.seen);
  switch (message.kind) {
    case ServerMessage::Kind::Welcome:
      state_ = State::Connected;
      session_ = message.session;
      pinged_ = contact_ = began_;
      event_({.kind = TreeEvent::Kind::Connected, .session = session_});
      break;
    case ServerMessage::Kind::Expired:
      Drop(TreeStatus::Expired);
      break;
    case ServerMessage::Kind::Closed:
      Drop(TreeStatus::Lost);
      break;
    case ServerMessage::Kind::Pong:
    case ServerMessage::Kind::Reply:
      Answer(message.reply);
      break;
    case ServerMessage::Kind::Changed:
      event_({.kind = TreeEvent::Kind::Changed, .path = message.path, .session = session_});
      break;
  }
}

}  // namespace millrace::engine
