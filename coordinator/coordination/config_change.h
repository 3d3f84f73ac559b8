// Who changed a part of the configuration, when, to what: a node history/<part>/<version> for each change.
// `version` is that of the part's node. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "coordinator/coordination/tree_mirror.h"

namespace millrace::engine {

struct ConfigChange {
  std::int32_t version = 0;
  std::string at;  // RFC 3339; empty: not known
  std::string by;
  std::string text;
  std::optional<std::int32_t> restores = {};  // a rollback: the version whose text this is
};

// Of a version that was set by other means than `millrace config`.
inline constexpr const char* kUnknownAuthor = "not known: set without millrace config";

// When the node's data was set; empty where the tree does not tell.
std::string SetAt(const TreeNode& node);

std::string HistoryFolder(const std::string& part);
// Sorted as text, the names are sorted by number.
std::string HistoryName(std::int32_t version);
// nullopt for what is no such node, or holds no change: what a person has put there.
std::optional<ConfigChange> ReadChange(const std::string& name, std::string_view text);

// What a rollback goes back to from this text, which is in force as `version` (nullopt: there is no node):
// the one before that has another text. From a rollback that is what stood before the version that it
// restored, so that a second one goes further back, and not forward again. nullptr: there is none.
const ConfigChange* ChangeBefore(const std::vector<ConfigChange>& history,
                                 std::optional<std::int32_t> version, const std::string& text);

// What stood before this text, which is in force as `version`, whatever it restores; nullptr: nothing that is
// known.
const ConfigChange* ChangeJustBefore(const std::vector<ConfigChange>& history,
                                     std::optional<std::int32_t> version, const std::string& text);

// Notes a change beside those that are `noted`, the sorted names of the folder's children; the last 50 stay,
// and what is no change is left alone.
std::vector<TreeWrite> NoteChange(const std::string& part, const ConfigChange& change,
                                  std::vector<std::string> noted);

// What is set by other means than `millrace config`, with zkCli for one, is noted by the leader as well, so
// that it can be rolled back. This is what NoteHistory has to know; and, once the node `read` was read, more.
void TrackHistory(TreeMirror& mirror);
void FollowHistory(TreeMirror& mirror, const std::string& read);
// The writes for one part whose present text is not noted yet; empty: every part's is. Versions that nobody
// saw, since another followed at once, are missing; so is what can't be written: the paths in `refused`.
std::vector<TreeWrite> NoteHistory(const TreeMirror& mirror, const std::set<std::string>& refused);

}  // namespace millrace::engine
