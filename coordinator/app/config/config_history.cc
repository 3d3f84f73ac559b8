#include "coordinator/app/config/config_history.h"

#include <algorithm>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "framework/base/time_text.h"

namespace millrace::engine {
namespace {

constexpr int kWriteTries = 3;

std::string PathOf(const std::string& part) { return "/config/" + part; }

Status MakeFolder(ClusterClient& client, const std::string& part) {
  BOOST_OUTCOME_TRY(folder, client.Get(HistoryFolder(part)));
  if (folder) return {};
  return client.Put(HistoryFolder(part), "");
}

// What stands there now, as the cluster was made or as it was set by other means while nobody led: kept for a
// rollback. It goes first and by itself, since one write has no room for two texts and the notes of both; if
// the change fails then, no more was done than a leader would have.
Status NotePresent(ClusterClient& client, const ConfigNode& node) {
  if (!node.version) return {};
  const std::string name = HistoryName(*node.version);
  BOOST_OUTCOME_TRY(note, client.Get(HistoryFolder(node.part) + "/" + name));
  const auto change = note ? ReadChange(name, note->data) : std::nullopt;
  if (change && change->text == node.text) return {};
  std::vector<std::string> stale;  // of a node that was there before this one
  if (note) stale.push_back(name);
  auto writes =
      NoteChange(node.part, {*node.version, node.set_at, kUnknownAuthor, node.text}, std::move(stale));
  writes.insert(writes.begin(), {TreeWrite::Kind::Check, PathOf(node.part), "", *node.version});
  if (BytesOf(writes) > kMostBytesAtOnce) {
    PrintNote("note: version " + std::to_string(*node.version) + " of config/" + node.part +
              " is too large for the history: there is no way back to it");
    return {};
  }
  return client.Write(std::move(writes), kMostBytesAtOnce);
}

std::vector<TreeWrite> Writes(const ConfigNode& node, const ConfigChange& change,
                              const std::vector<std::string>& noted) {
  std::vector<TreeWrite> writes;
  if (node.version) {
    writes.push_back({TreeWrite::Kind::Set, PathOf(node.part), change.text, *node.version});
  } else {
    writes.push_back({TreeWrite::Kind::Create, PathOf(node.part), change.text});
  }
  const auto note = NoteChange(node.part, change, noted);
  writes.insert(writes.end(), note.begin(), note.end());
  return writes;
}

}  // namespace

Status CheckSize(const std::string& part, const std::string& text) {
  if (text.size() <= kLongestPart) return {};
  return Fail(ErrorCode::Invalid,
              "config/" + part + ": the document has " + WithCommas(text.size()) +
                  " bytes, and a part takes at most " + WithCommas(kLongestPart) +
                  ": leave out what is as the defaults are; comments and spaces count, too");
}

Result<std::int32_t> SetConfig(ClusterClient& client, const ConfigNode& node, const std::string& text,
                               const std::string& by, std::optional<std::int32_t> restores) {
  BOOST_OUTCOME_TRYV(MakeFolder(client, node.part));
  const std::int32_t next = node.version ? *node.version + 1 : 0;
  const ConfigChange change{next, FormatTime(SystemClock().WallNow()), by, text, restores};
  for (int i = 0; i < kWriteTries; ++i) {
    Status done = NotePresent(client, node);
    if (done) {
      BOOST_OUTCOME_TRY(noted, client.List(HistoryFolder(node.part)));
      done = client.Write(Writes(node, change, noted), kMostBytesAtOnce);
    }
    if (done) return next;
    const ErrorCode code = done.error().code;
    if (code != ErrorCode::Conflict && code != ErrorCode::NotFound) return Fail(done.error());
    BOOST_OUTCOME_TRY(now, client.Get(PathOf(node.part)));
    const auto version = now ? std::optional(now->version) : std::nullopt;
    if (version != node.version) break;  // otherwise the leader has noted something meanwhile
  }
  return Fail(ErrorCode::Conflict,
              "somebody else has changed config/" + node.part + " meanwhile: look at it, and try again");
}

Result<std::vector<ConfigChange>> ReadHistory(ClusterClient& client, const std::string& part) {
  BOOST_OUTCOME_TRY(names, client.List(HistoryFolder(part)));
  std::vector<ConfigChange> changes;
  for (const std::string& name : names) {
    BOOST_OUTCOME_TRY(node, client.Get(HistoryFolder(part) + "/" + name));
    if (!node) continue;
    if (auto change = ReadChange(name, node->data)) changes.push_back(std::move(*change));
  }
  BOOST_OUTCOME_TRY(current, client.Get(PathOf(part)));
  // A node that was removed and made anew counts from 0 again: its version need not be the last.
  const ConfigChange* known = current ? FindVersion(changes, current->version) : nullptr;
  if (current && (known == nullptr || known->text != current->data)) {
    changes.push_back({current->version, SetAt(*current), kUnknownAuthor, current->data});
  }
  return changes;
}

const ConfigChange* FindVersion(const std::vector<ConfigChange>& history, std::int32_t version) {
  const auto found = std::find_if(history.begin(), history.end(),
                                  [&](const ConfigChange& change) { return change.version == version; });
  return found == history.end() ? nullptr : &*found;
}

Result<ConfigNode> CurrentNode(ClusterClient& client, const std::string& part) {
  BOOST_OUTCOME_TRY(node, client.Get("/config/" + part));
  if (!node) return ConfigNode{part, "{}", std::nullopt};
  return ConfigNode{part, node->data.empty() ? "{}" : node->data, node->version, SetAt(*node), node->created};
}

}  // namespace millrace::engine
