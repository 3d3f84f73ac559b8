// A duty of the leader: what is set by other means than `millrace config`, with zkCli for one, is noted in
// the configuration's history as well, so that it can be rolled back. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "coordinator/coordination/tree_mirror.h"

namespace millrace::engine {

// What NoteHistory has to know.
void TrackHistory(TreeMirror& mirror);
// The writes for one part whose present text is not noted yet; empty: every part's is. Versions that nobody
// saw, since another followed at once, are missing; so is what can't be written: the paths in `refused`.
std::vector<TreeWrite> NoteHistory(const TreeMirror& mirror, const std::set<std::string>& refused);

}  // namespace millrace::engine
