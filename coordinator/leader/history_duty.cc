#include "coordinator/leader/history_duty.h"

#include <algorithm>

#include "coordinator/coordination/config_change.h"
#include "coordinator/coordination/config_layers.h"
#include "coordinator/coordination/fixed_nodes.h"

namespace millrace::engine {
namespace {

// A longer text fits into a node, and not into one of a history, where its quotes are escaped.
constexpr std::size_t kLongest = 240 * 1024;

std::string NodeOf(const char* part) { return std::string("/config/") + part; }

}  // namespace

void TrackHistory(TreeMirror& mirror) {
  for (const char* part : kConfigParts) {
    mirror.TrackNode(NodeOf(part));
    mirror.TrackNode(HistoryFolder(part));
    mirror.TrackList(HistoryFolder(part));
  }
}

std::vector<TreeWrite> NoteHistory(const TreeMirror& mirror, const std::set<std::string>& refused) {
  for (const char* part : kConfigParts) {
    const TreeNode* node = mirror.Node(NodeOf(part));
    const std::vector<std::string>& noted = mirror.List(HistoryFolder(part));
    if (node == nullptr || IsUntouched(*node)) continue;
    if (std::binary_search(noted.begin(), noted.end(), HistoryName(node->version))) continue;
    auto writes = NoteChange(part, {node->version, SetAt(*node), kUnknownAuthor, node->data}, noted);
    if (writes.front().data.size() > kLongest) continue;
    if (mirror.Node(HistoryFolder(part)) == nullptr) {
      writes.insert(writes.begin(), {TreeWrite::Kind::Create, HistoryFolder(part)});
    }
    const bool possible = std::none_of(writes.begin(), writes.end(),
                                       [&](const TreeWrite& write) { return refused.contains(write.path); });
    if (possible) return writes;
  }
  return {};
}

}  // namespace millrace::engine
