// The seam to ZooKeeper: a tree of small nodes, sessions, one-shot watches. Requests and replies are values,
// so that the same state machines run against the real client and against the simulator's modelled tree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/base/clock.h"
#include "framework/base/result.h"

namespace millrace::engine {

// Names and data are text. Paths begin with '/' and are relative to `<chroot>/millrace/<cluster>`; "/" is
// that node itself.
struct TreeNode {
  std::string data;
  std::int32_t version = 0;   // of the data; 0 for a new node
  std::int64_t created = 0;   // the transaction that made it (czxid): the order in which nodes were made
  std::int64_t owner = 0;     // the session whose end removes it; 0: persistent
  WallTime set_at{};          // its data, by a server's clock, for people alone; the epoch: not known
  std::int32_t children = 0;  // how many it has
  bool operator==(const TreeNode&) const = default;
};

struct TreeWrite {
  enum class Kind {
    Check,            // the node exists, with this version
    Create,           // persistent; the parent must exist
    CreateEphemeral,  // removed with the session that makes it
    Set,
    Remove,  // the node has no children
  };
  Kind kind = Kind::Check;
  std::string path;
  std::string data = {};      // Create, CreateEphemeral, Set
  std::int32_t version = -1;  // Check, Set, Remove; -1: any
};

// The bounds of one write. Larger ones fail as a lost connection at the servers' limit of about 1 MB, again
// and again.
inline constexpr std::size_t kMostWrites = 200;
inline constexpr std::size_t kMostBytes = 256 * 1024;  // of data
// Of one that a person asks for, seldom, and that can't be divided: as much as the servers' limit leaves
// beside the paths.
inline constexpr std::size_t kMostBytesAtOnce = 960 * 1024;

struct TreeRequest {
  enum class Kind {
    Get,    // one node
    List,   // the names of a node's children
    Write,  // all of `writes`, or none: at most 200 of them and `most_bytes` of data
  };
  Kind kind = Kind::Get;
  std::string path = {};  // Get, List
  // Get, List: a TreeEvent for the next change, which is also the making of a node that is not there.
  bool watch = false;
  std::vector<TreeWrite> writes = {};
  std::size_t most_bytes = kMostBytes;
};

enum class TreeStatus {
  Ok,
  NotFound,  // Get, List, Set, Remove, Check: no such node; Create: no parent
  Exists,    // Create: the node is there
  Conflict,  // another version; Remove: it has children
  Lost,      // the connection was lost: a read did not happen, a write may or may not have. Read back
  Expired,   // the session is over, and its ephemeral nodes are gone; nothing was done
  Denied,    // the digest of this client may not do that
  Invalid,   // the server refuses the request itself (too large, a bad path)
};

struct TreeReply {
  TreeStatus status = TreeStatus::Lost;
  TreeNode node = {};                      // Get
  std::vector<std::string> children = {};  // List; sorted
  std::size_t failed = 0;                  // Write that failed: which of the writes was refused
  std::string message = {};                // for logs: what and where; empty if Ok
};

// A watch is a hint: what happened while the client was disconnected may never be told. After each Connected
// everything has to be read again.
struct TreeEvent {
  enum class Kind {
    Changed,       // `path`: its data, its children, its making or its end
    Connected,     // `session` is usable (again); may be a new one
    Disconnected,  // nothing is known until Connected or Expired; the session may be over already
    Expired,       // the session is over; a new one follows by itself, told by Connected
  };
  Kind kind = Kind::Changed;
  std::string path = {};
  std::int64_t session = 0;
  // Connected: how long the servers let the session live, which may be more than was asked for; 0: not known.
  Micros timeout{0};
};

const char* ToString(TreeStatus status);

// Absolute, without an empty part or a slash at its end; `/` is one.
bool IsPath(const std::string& path);

std::size_t BytesOf(const std::vector<TreeWrite>& writes);

}  // namespace millrace::engine
