// The nodes of a cluster that always exist, whoever is running. Their meaning is in coordinator/README.md.
#pragma once

#include <array>
#include <string_view>

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

}  // namespace millrace::engine
