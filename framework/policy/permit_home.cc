#include "framework/policy/permit_home.h"

namespace millrace::engine {

HomeChoice ChooseHome(const std::map<std::string, std::optional<std::string>>& said) {
  HomeChoice choice;
  std::map<std::string, std::string> named;  // home → a shard that says so
  std::string silent;
  for (const auto& [shard, home] : said) {
    if (!home) {
      silent = shard;
    } else if (!home->empty()) {
      named.emplace(*home, shard);
    }
  }
  if (named.size() > 1) {
    const auto& [one, by_one] = *named.begin();
    const auto& [other, by_other] = *named.rbegin();
    choice.trouble = "shard " + by_one + " names " + one + " as the home of permits, and shard " + by_other +
                     " names " + other +
                     ": delete the wrong rows (DELETE FROM millrace_permits WHERE handler='')";
    return choice;
  }
  if (named.empty() && !silent.empty()) {
    choice.trouble = "shard " + silent + " does not answer, and no home of permits is named yet";
    return choice;
  }
  if (said.empty()) {
    choice.trouble = "no shard is served";
    return choice;
  }
  choice.name = named.empty() ? said.begin()->first : named.begin()->first;
  const auto home = said.find(choice.name);
  if (home == said.end()) {
    choice.trouble = "shard " + choice.name +
                     " is the home of permits and not among the shards: bring it back; or, once no worker "
                     "uses it any more, DELETE FROM millrace_permits WHERE handler='' in each shard";
    return choice;
  }
  for (const auto& [shard, says] : said) {
    if (says && says->empty() && shard != choice.name) choice.unnamed.push_back(shard);
  }
  if (home->second && home->second->empty() && choice.unnamed.empty()) {
    if (!silent.empty()) {
      choice.trouble =
          "shard " + silent + " does not answer, and the home of permits is not named in all others";
      return choice;
    }
    choice.unnamed.push_back(choice.name);
  }
  if (!home->second) choice.trouble = "shard " + choice.name + ", the home of permits, does not answer";
  if (home->second == choice.name) choice.home = choice.name;
  return choice;
}

bool MayStayHome(const std::string& home, const std::map<std::string, std::optional<std::string>>& said) {
  if (!said.contains(home)) return false;
  for (const auto& [shard, says] : said) {
    const bool silent = !says || (says->empty() && shard != home);
    if (!silent && *says != home) return false;
  }
  return true;
}

}  // namespace millrace::engine
