// What the workers of a cluster have made of a new version of a part of the configuration.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "coordinator/app/command/cluster_client.h"
#include "coordinator/app/config/config_document.h"

namespace millrace::engine {

struct ConfigWord {
  enum class State {
    InForce,
    Refused,  // the last good version stays
    Silent,   // it has not told of this version yet
    Unknown,  // it tells of no versions: it is older than this program, or its status can't be read
  };
  std::string worker;
  State state = State::Silent;
  std::string why = {};  // Refused
  bool operator==(const ConfigWord&) const = default;
};

// Which text of a part is meant. A node that was removed and made anew counts its versions from 0 again.
struct ConfigVersion {
  std::string part;
  std::int32_t version = 0;
  std::int64_t made = 0;  // the transaction that made the node; 0: not known
  // Of `handlers`: the task types that it changes. What their handlers refuse is refused; others may have
  // refused theirs for long.
  std::set<std::string> types = {};
};

// Of the text of status/<id>; nullopt: there is no such node. Pure.
ConfigWord ReadConfigWord(const std::string& worker, const std::optional<std::string>& status,
                          const ConfigVersion& wanted);

// Asks until every worker that is there has told, at most as long as a new version takes to be in force.
// By their ids.
Result<std::vector<ConfigWord>> AskWorkers(ClusterClient& client, const ConfigVersion& wanted);

// None of them refuses it, and all that tell of versions have told.
bool AllFollow(const std::vector<ConfigWord>& words);
// `in force on 3 of 4 workers`, and lines of those that do not follow.
std::string InForceText(const std::vector<ConfigWord>& words);
std::vector<std::string> Complaints(const std::vector<ConfigWord>& words);
// What of these changes a worker follows, and carries out only later: a sentence; empty: nothing. Pure.
std::string HoldsLater(const std::vector<KeyChange>& changes);
// [{"worker","state","why"}]
nlohmann::ordered_json ToJson(const std::vector<ConfigWord>& words);

}  // namespace millrace::engine
