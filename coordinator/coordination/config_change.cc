#include "coordinator/coordination/config_change.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "coordinator/coordination/config_layers.h"
#include "coordinator/coordination/fixed_nodes.h"
#include "coordinator/coordination/json_text.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kKept = 50;
constexpr std::size_t kDigits = 10;

// The keys of history/<part>/<version>.
constexpr const char* kAt = "at";
constexpr const char* kBy = "by";
constexpr const char* kDocument = "document";
constexpr const char* kRestores = "restores";

// A longer text fits into a node, and not into one of a history, where its quotes are escaped.
constexpr std::size_t kLongest = 240 * 1024;

std::string NodeOf(const char* part) { return std::string("/config/") + part; }

bool IsHistoryName(const std::string& name) {
  return name.size() == kDigits && name.find_first_not_of("0123456789") == std::string::npos;
}

const ConfigChange* Find(const std::vector<ConfigChange>& history, std::int32_t version) {
  const auto found = std::find_if(history.begin(), history.end(),
                                  [&](const ConfigChange& change) { return change.version == version; });
  return found == history.end() ? nullptr : &*found;
}

std::optional<std::string> TextIn(const std::string& name, const std::string& note) {
  auto change = ReadChange(name, note);
  return change ? std::optional(std::move(change->text)) : std::nullopt;
}

// A node that was removed and made anew counts from 0 again: then the numbers say nothing of the order, and
// the times tell.
bool HasBegunAnew(const std::vector<ConfigChange>& history, std::int32_t version) {
  return std::any_of(history.begin(), history.end(),
                     [&](const ConfigChange& change) { return change.version > version; });
}

}  // namespace

std::string SetAt(const TreeNode& node) { return node.set_at == WallTime{} ? "" : FormatTime(node.set_at); }

std::string HistoryFolder(const std::string& part) { return "/history/" + part; }

std::string HistoryName(std::int32_t version) {
  char name[16];
  std::snprintf(name, sizeof name, "%0*d", static_cast<int>(kDigits), version);
  return name;
}

std::optional<ConfigChange> ReadChange(const std::string& name, std::string_view text) {
  const auto json = ParseNode<nlohmann::json>(text);
  if (!IsHistoryName(name) || !json.is_object()) return std::nullopt;
  const auto document = json.find(kDocument);
  if (document == json.end() || !document->is_string()) return std::nullopt;
  ConfigChange change;
  change.version = static_cast<std::int32_t>(std::strtol(name.c_str(), nullptr, 10));
  const auto read = [&](const char* key, std::string& into) {
    const auto found = json.find(key);
    if (found != json.end() && found->is_string()) into = found->get<std::string>();
  };
  read(kAt, change.at);
  read(kBy, change.by);
  read(kDocument, change.text);
  const auto restores = json.find(kRestores);
  if (restores != json.end() && restores->is_number_integer())
    change.restores = restores->get<std::int32_t>();
  return change;
}

const ConfigChange* ChangeBefore(const std::vector<ConfigChange>& history,
                                 std::optional<std::int32_t> version, const std::string& text) {
  const ConfigChange* present = version ? Find(history, *version) : nullptr;
  // A node that was removed and made anew counts from 0 again: all that is noted came before it.
  const bool known = present != nullptr && present->text == text;
  const bool by_time = !known || HasBegunAnew(history, *version);
  const auto earlier = [by_time](const ConfigChange& a, const ConfigChange& b) {
    return by_time ? a.at < b.at : a.version < b.version;
  };
  // What a rollback restored may itself have been a rollback; each lies before the one that restores it.
  ConfigChange from = known ? *present : ConfigChange{};
  while (from.restores) {
    const ConfigChange* restored = Find(history, *from.restores);
    const ConfigChange forgotten{*from.restores, "", "", text};  // of which only the number is left
    const ConfigChange& next = restored == nullptr ? forgotten : *restored;
    if (next.text != text || (restored == nullptr && by_time) || !earlier(next, from)) break;
    from = ConfigChange(next);
  }
  const ConfigChange* before = nullptr;
  for (const ConfigChange& change : history) {
    if (change.text == text || (known && !earlier(change, from))) continue;
    if (before == nullptr || !earlier(change, *before)) before = &change;
  }
  return before;
}

const ConfigChange* ChangeJustBefore(const std::vector<ConfigChange>& history,
                                     std::optional<std::int32_t> version, const std::string& text) {
  const bool anew = !version || HasBegunAnew(history, *version);
  const ConfigChange* before = nullptr;
  for (const ConfigChange& change : history) {
    if (version && change.version == *version && change.text == text) continue;
    const bool earlier =
        before != nullptr && (anew ? change.at < before->at : change.version < before->version);
    if (!earlier) before = &change;
  }
  return before;
}

std::vector<TreeWrite> NoteChange(const std::string& part, const ConfigChange& change,
                                  std::vector<std::string> noted) {
  std::erase_if(noted, [](const std::string& child) { return !IsHistoryName(child); });
  const std::string folder = HistoryFolder(part) + "/";
  const std::string name = HistoryName(change.version);
  // A node that was removed and made anew counts its versions from 0 again: the greater ones came before.
  const bool known = std::binary_search(noted.begin(), noted.end(), name);
  std::rotate(noted.begin(), std::upper_bound(noted.begin(), noted.end(), name), noted.end());
  nlohmann::ordered_json json{{kAt, change.at}, {kBy, change.by}, {kDocument, change.text}};
  if (change.restores) json[kRestores] = *change.restores;
  std::vector<TreeWrite> writes{
      {known ? TreeWrite::Kind::Set : TreeWrite::Kind::Create, folder + name, JsonText(json)}};
  for (std::size_t i = 0; i + kKept < noted.size(); ++i) {
    if (noted[i] != name) writes.push_back({TreeWrite::Kind::Remove, folder + noted[i]});
  }
  return writes;
}

void TrackHistory(TreeMirror& mirror) {
  for (const char* part : kConfigParts) {
    mirror.TrackNode(NodeOf(part));
    mirror.TrackNode(HistoryFolder(part));
    mirror.TrackList(HistoryFolder(part));
  }
}

void FollowHistory(TreeMirror& mirror, const std::string& read) {
  for (const char* part : kConfigParts) {
    if (read != NodeOf(part)) continue;
    const TreeNode* node = mirror.Node(read);
    const bool to_note = node != nullptr && !IsUntouched(*node);
    mirror.TrackNodesOf(HistoryFolder(part),
                        to_note ? std::vector{HistoryName(node->version)} : std::vector<std::string>());
  }
}

std::vector<TreeWrite> NoteHistory(const TreeMirror& mirror, const std::set<std::string>& refused) {
  for (const char* part : kConfigParts) {
    const TreeNode* node = mirror.Node(NodeOf(part));
    const std::vector<std::string>& noted = mirror.List(HistoryFolder(part));
    if (node == nullptr || IsUntouched(*node)) continue;
    auto writes = NoteChange(part, {node->version, SetAt(*node), kUnknownAuthor, node->data}, noted);
    const std::string name = HistoryName(node->version);
    if (std::binary_search(noted.begin(), noted.end(), name)) {
      // Of this node, or of one that was there before it?
      const TreeNode* note = mirror.Node(HistoryFolder(part) + "/" + name);
      if (note == nullptr || TextIn(name, note->data) == TextIn(name, writes.front().data)) continue;
    }
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
