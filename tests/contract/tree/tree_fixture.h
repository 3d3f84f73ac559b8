// What the contract of the tree needs of an implementation under test: an empty tree, clients of it, and a
// network between them that can be hurt.
#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include "coordinator/coordination/session.h"

namespace millrace::engine {

// A fresh tree in which "/" exists, gone with the fixture, which outlives its sessions. Used by one thread.
class TreeFixture {
 public:
  virtual ~TreeFixture() = default;

  // A client with a session of its own, not yet connected. Its time-out is about a second.
  virtual std::unique_ptr<TreeSession> Open() = 0;
  // Cuts a client off from every server, until Mend.
  virtual void Cut(TreeSession& session) = 0;
  virtual void Mend(TreeSession& session) = 0;
  // Returns when the servers have ended the session of a client that is cut off.
  virtual void AwaitExpiry(TreeSession& session) = 0;
  // The clock of LastContact.
  virtual BootTime Now() const { return BootClock::now(); }
  // The next write of a client that contains this text is carried out, and its reply lost with the
  // connection.
  virtual void LoseReply(TreeSession& session, const std::string& text) = 0;
};

// A kind of tree for testing::Values. `make` dies with a message where it can't.
struct TreeKind {
  std::string name;
  std::function<std::unique_ptr<TreeFixture>()> make;
};
inline void PrintTo(const TreeKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace millrace::engine
