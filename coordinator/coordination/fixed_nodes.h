// The nodes of a cluster that always exist, whoever is running; their meaning is in coordinator/README.md.
// They are made again by whoever misses them: somebody may have deleted one with all that was below it, or
// the whole tree. What was done is noted in the cluster's own node, "/", for people:
// `{"made_again":[{"nodes":["/assign"],"at":"2026-11-20T18:00:00Z","by":"w1"}]}`. Pure.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/coordination/tree_mirror.h"

namespace millrace::engine {

struct FixedNode {
  std::string_view path;  // as in a TreeRequest
  std::string_view data;  // what it holds when it is made
};

// Parents before their children.
inline constexpr std::array kFixedNodes{
    FixedNode{"/epoch", R"({"epoch":0})"},
    FixedNode{"/election", ""},
    FixedNode{"/workers", ""},
    FixedNode{"/assign", ""},
    FixedNode{"/status", ""},
    FixedNode{"/leave", ""},
    FixedNode{"/control", ""},
    FixedNode{"/control/drain", ""},
    FixedNode{"/control/expect", ""},
    FixedNode{"/control/pause", ""},
    FixedNode{"/control/limits", ""},
    FixedNode{"/config", ""},
    FixedNode{"/config/engine", "{}"},
    FixedNode{"/config/handlers", "{}"},
    FixedNode{"/config/shards", "{}"},
    FixedNode{"/config/schedules", "{}"},
    FixedNode{"/config/alerts", "{}"},
    FixedNode{"/history", ""},
};

// Three lists and a node, whatever the number of fixed ones.
void TrackFixedNodes(TreeMirror& mirror);

// Those that are missing, parents first, as far as the mirror knows; "/" is the cluster itself.
std::vector<std::string> MissingNodes(const TreeMirror& mirror);

// As in a new cluster: nobody has said anything by it yet.
bool IsUntouched(const TreeNode& node);

// The nodes above this one that always exist, as in a new cluster, parents first.
std::vector<TreeWrite> FixedNodesAbove(const std::string& path);

struct MadeAgain {
  std::vector<std::string> nodes;
  std::string at;  // RFC 3339
  std::string by;  // the id of a worker or coordinator
  bool operator==(const MadeAgain&) const = default;
};
// From the data of "/": the latest last. What can't be read is no note.
std::vector<MadeAgain> ReadMadeAgain(std::string_view text);

// The write that makes as many of them as fit, and notes it. Of all who miss a node one succeeds, the others
// read anew. `emptied`: those that are there again, untouched, and have lost what they held. `text`: what a
// node held last; nullopt: as in a new cluster.
TreeRequest MakeAgain(const TreeMirror& mirror, const std::vector<std::string>& emptied,
                      const std::string& at, const std::string& by,
                      const std::function<std::optional<std::string>(const std::string& path)>& text);

}  // namespace millrace::engine
