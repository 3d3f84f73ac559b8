// What is held by permits, and which shard is their home. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace millrace::engine {

// How many may run at once in the whole cluster, and in this worker.
struct PermitRule {
  std::uint32_t concurrency = 1;
  std::uint32_t here = 1;  // its threads
  bool operator==(const PermitRule&) const = default;
};
using PermitRules = std::map<std::string, PermitRule>;  // by task type

// There must never be two homes at once, whatever list of shards each worker has. So the first that needs one
// names the first shard by name, in every other shard, asks them all once more, and names it in itself only
// if all of them say so; from then on it stays the home, also when a shard with an earlier name comes.
// Workers that find no home among their shards, or two, hold no permits until somebody has seen to it.
struct HomeChoice {
  std::string home;  // may be used; empty: not yet
  std::string name;  // is to be named in these shards; then ask all anew
  std::vector<std::string> unnamed;
  std::string trouble;  // why there is none; empty: there is, or will be
};

// What each shard says is the home, by name: empty: nothing yet; nullopt: it does not answer.
HomeChoice ChooseHome(const std::map<std::string, std::optional<std::string>>& said);
// Whether a home that was found before may be used on: some that are asked may be silent, but nobody names
// another, nor has the home itself forgotten that it is.
bool MayStayHome(const std::string& home, const std::map<std::string, std::optional<std::string>>& said);

}  // namespace millrace::engine
