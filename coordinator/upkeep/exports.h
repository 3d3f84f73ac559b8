// Finished tasks in files, before they are pruned: a file for each day and host, a JSON object a line.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/store/task_operations.h"

namespace millrace::engine {

// One thread. Others, in this process or another, may append to the same file: each writes whole lines, one
// after another.
class Exports {
 public:
  Exports(std::string shard, std::string host) : shard_(std::move(shard)), host_(std::move(host)) {}

  // Appends the tasks of a type to `folder`/2026-11-20.HOST.jsonl, the day being that of `now` in UTC; true
  // once they are on the disk. A folder that can't be written is a trouble of the type's, and is logged once.
  bool Write(const std::string& type, const std::string& folder, std::span<const TaskRecord> tasks,
             WallTime now);
  // Types that are exported no longer have no trouble.
  void KeepTroubles(const std::set<std::string>& types);
  // All tables were walked: nor have those of which nothing was to be written meanwhile.
  void EndWalk();
  // One for each type whose tasks can't be written, and so stay; sorted by type.
  std::vector<std::string> Troubles() const;

 private:
  const std::string shard_;
  const std::string host_;
  std::map<std::string, std::string> troubles_;  // by type
  std::set<std::string> asked_;                  // types, since the walk began
};

// Appends `lines` behind the last whole line of the file, which is made where it is missing, and waits for
// the disk; under the file's lock (flock), for which it waits a second. An error names the file and leaves it
// as it was, as far as the system lets it.
Status AppendLines(const std::string& path, const std::string& lines);

}  // namespace millrace::engine
