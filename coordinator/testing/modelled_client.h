// A process's client of the modelled ensemble: keeps a session through lost connections, and opens a new one
// after an expiry, as the real client with its adapter does.
#pragma once

#include <array>
#include <deque>
#include <functional>

#include "coordinator/testing/modelled_ensemble.h"

namespace millrace::engine {

using TreeLinks = std::array<TreeLink, ModelledEnsemble::kServers>;

// Not thread-safe. Everything happens on its strand.
class ModelledClient final : public TreePeer {
 public:
  struct Parts {
    Timeline& timeline;
    ModelledEnsemble& ensemble;
    Strand& strand;
    const TreeLinks& links;
    Micros timeout;
  };
  using Done = std::function<void(const TreeReply& reply)>;

  ModelledClient(Parts parts, std::function<void(const TreeEvent&)> event);

  // Several may be asked for at once; they are performed in order. Lost, a moment later, while there is no
  // connection.
  void Ask(TreeRequest request, Done done);
  // Ends the session in order: its ephemeral nodes go at once.
  void Close();

  bool Connected() const { return state_ == State::Connected; }
  std::int64_t Session() const { return session_; }
  // When the last write or ping that was answered was sent.
  BootTime LastContact() const { return contact_; }

  void Receive(const ServerMessage& message) override;

 private:
  enum class State { Resting, Connecting, Connected, Closed };
  struct Asked {
    BootTime sent;
    bool read = false;
    Done done;  // null: a ping
  };

  void Connect();
  void Tick();
  void Send(ClientMessage message, Done done);
  void Answer(const TreeReply& reply);
  // The connection is of no more use: what was asked is answered with `status`.
  void Drop(TreeStatus status);
  void Rest();

  const Parts parts_;
  const std::function<void(const TreeEvent&)> event_;
  State state_ = State::Resting;
  std::size_t server_ = 0;
  std::uint64_t connection_ = 0;
  std::int64_t session_ = 0;
  std::int64_t seen_ = 0;
  BootTime began_{};
  BootTime heard_{};
  BootTime pinged_{};
  BootTime contact_{};
  std::deque<Asked> asked_;
};

}  // namespace millrace::engine
