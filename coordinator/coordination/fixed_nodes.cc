#include "coordinator/coordination/fixed_nodes.h"

#include <algorithm>
#include <utility>

#include "coordinator/coordination/json_text.h"

namespace millrace::engine {
namespace {

constexpr const char* kRoot = "/";
// The keys of the root's own text.
constexpr const char* kMadeAgain = "made_again";
constexpr const char* kNodes = "nodes";
constexpr const char* kMadeAt = "at";
constexpr const char* kMadeBy = "by";
constexpr std::size_t kNotesKept = 10;
constexpr std::size_t kBytesAtOnce = 200 * 1024;  // in one write, beside the notes

// Every folder that has fixed nodes in it.
constexpr std::array kFolders{kRoot, "/control", "/config"};

// Nothing is missed in a folder that may not be read.
bool IsThere(const TreeMirror& mirror, const std::string& path) {
  if (mirror.IsDenied(ParentOf(path))) return true;
  const std::vector<std::string>& names = mirror.List(ParentOf(path));
  return std::binary_search(names.begin(), names.end(), path.substr(path.rfind('/') + 1));
}

std::string ToText(const std::vector<MadeAgain>& notes) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const MadeAgain& note : notes)
    list.push_back({{kNodes, note.nodes}, {kMadeAt, note.at}, {kMadeBy, note.by}});
  return JsonText({{kMadeAgain, std::move(list)}});
}

}  // namespace

void TrackFixedNodes(TreeMirror& mirror) {
  mirror.TrackNode(kRoot);
  for (const char* folder : kFolders) mirror.TrackList(folder);
}

std::vector<std::string> MissingNodes(const TreeMirror& mirror) {
  std::vector<std::string> missing;
  if (mirror.IsDenied(kRoot)) return missing;
  if (mirror.Node(kRoot) == nullptr) missing.emplace_back(kRoot);
  for (const FixedNode& node : kFixedNodes) {
    if (!IsThere(mirror, std::string(node.path))) missing.emplace_back(node.path);
  }
  return missing;
}

bool IsUntouched(const TreeNode& node) {
  return node.version == 0 && (node.data.empty() || node.data == "{}");
}

std::vector<TreeWrite> FixedNodesAbove(const std::string& path) {
  std::vector<TreeWrite> writes;
  for (const FixedNode& node : kFixedNodes) {
    if (!path.starts_with(std::string(node.path) + "/")) continue;
    writes.push_back({TreeWrite::Kind::Create, std::string(node.path), std::string(node.data)});
  }
  return writes;
}

std::vector<MadeAgain> ReadMadeAgain(std::string_view text) {
  std::vector<MadeAgain> notes;
  const auto json = ParseNode<nlohmann::json>(text);
  if (!json.is_object() || !json.contains(kMadeAgain) || !json[kMadeAgain].is_array()) return notes;
  for (const auto& entry : json[kMadeAgain]) {
    if (!entry.is_object()) continue;
    MadeAgain note;
    if (entry.contains(kMadeAt) && entry[kMadeAt].is_string()) note.at = entry[kMadeAt];
    if (entry.contains(kMadeBy) && entry[kMadeBy].is_string()) note.by = entry[kMadeBy];
    if (!entry.contains(kNodes) || !entry[kNodes].is_array()) continue;
    for (const auto& node : entry[kNodes]) {
      if (node.is_string()) note.nodes.push_back(node);
    }
    notes.push_back(std::move(note));
  }
  return notes;
}

TreeRequest MakeAgain(const TreeMirror& mirror, const std::vector<std::string>& emptied,
                      const std::string& at, const std::string& by,
                      const std::function<std::optional<std::string>(const std::string& path)>& text) {
  const TreeNode* root = mirror.Node(kRoot);
  MadeAgain note{{}, at, by};
  std::vector<TreeWrite> writes;
  std::size_t bytes = 0;
  for (const FixedNode& node : kFixedNodes) {
    const std::string path(node.path);
    const bool is_there = root != nullptr && IsThere(mirror, path);
    if (is_there && std::find(emptied.begin(), emptied.end(), path) == emptied.end()) continue;
    std::string data = text(path).value_or(std::string(node.data));
    if (bytes > 0 && bytes + data.size() > kBytesAtOnce) break;  // the rest by the next write
    bytes += data.size();
    note.nodes.push_back(path);
    // Of version 0: so it is still untouched.
    const auto kind = is_there ? TreeWrite::Kind::Set : TreeWrite::Kind::Create;
    writes.push_back({kind, path, std::move(data), is_there ? 0 : -1});
  }
  std::vector<MadeAgain> notes;
  TreeWrite own{TreeWrite::Kind::Create, kRoot};
  if (root != nullptr) {
    notes = ReadMadeAgain(root->data);
    own = {TreeWrite::Kind::Set, kRoot, {}, root->version};
  } else {
    note.nodes.insert(note.nodes.begin(), kRoot);
  }
  notes.push_back(std::move(note));
  if (notes.size() > kNotesKept) notes.erase(notes.begin(), notes.end() - kNotesKept);
  own.data = ToText(notes);
  writes.insert(writes.begin(), std::move(own));
  // A part of the configuration may be larger than what is written in the ordinary way.
  return TreeRequest{
      .kind = TreeRequest::Kind::Write, .writes = std::move(writes), .most_bytes = kMostBytesAtOnce};
}

}  // namespace millrace::engine
