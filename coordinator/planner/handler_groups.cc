#include "coordinator/planner/handler_groups.h"

#include <algorithm>
#include <set>

namespace millrace::engine {
namespace {

using WorkerSet = std::vector<bool>;

// Handlers, by who accepts them.
using Classes = std::map<WorkerSet, std::vector<std::string>>;

WorkerSet AcceptedBy(std::span<const AcceptedHandlers> workers, const std::string& handler) {
  WorkerSet set;
  for (const AcceptedHandlers& worker : workers) set.push_back(Allows(worker, handler));
  return set;
}

bool Any(const WorkerSet& set) { return std::find(set.begin(), set.end(), true) != set.end(); }

Classes Classify(std::span<const AcceptedHandlers> workers,
                 const std::map<std::string, std::string>& configured) {
  std::set<std::string> handlers;
  for (const AcceptedHandlers& worker : workers) {
    if (worker) handlers.insert(worker->begin(), worker->end());
  }
  for (const auto& [handler, group] : configured) handlers.erase(handler);
  Classes classes;
  for (const std::string& handler : handlers) classes[AcceptedBy(workers, handler)].push_back(handler);
  // The types that every program has by itself name no group: what a group is called is not theirs to say.
  for (auto& [set, members] : classes) {
    std::stable_partition(members.begin(), members.end(),
                          [](const std::string& type) { return !type.starts_with("millrace."); });
  }
  const WorkerSet accept_all = AcceptedBy(workers, kEveryOther);
  if (Any(accept_all)) classes[accept_all].push_back(kEveryOther);
  return classes;
}

std::map<std::string, std::vector<std::string>> Configured(
    const std::map<std::string, std::string>& configured) {
  std::map<std::string, std::vector<std::string>> groups;
  for (const auto& [handler, group] : configured) groups[group].push_back(handler);
  return groups;
}

// No handler's name has a dash in it, so that two derived groups never want the same name.
std::string FreeName(std::string name, const std::map<std::string, std::vector<std::string>>& taken) {
  while (name == kDefaultGroup || taken.contains(name)) name += "-";
  return name;
}

}  // namespace

std::vector<HandlerGroup> DeriveGroups(std::span<const AcceptedHandlers> workers,
                                       const std::map<std::string, std::string>& configured) {
  std::map<std::string, std::vector<std::string>> groups = Configured(configured);
  const Classes classes = Classify(workers, configured);
  // No handler at all is known: the slices are owned, and wait for one.
  if (classes.empty() && groups.empty()) groups[kDefaultGroup] = {};
  for (const auto& [set, handlers] : classes) {
    const bool rest = classes.size() == 1 || handlers.back() == kEveryOther;
    groups[rest ? kDefaultGroup : FreeName(handlers.front(), groups)] = handlers;
  }
  std::vector<HandlerGroup> derived;
  for (auto& [name, handlers] : groups) derived.push_back({name, std::move(handlers)});
  return derived;
}

std::string CarriedFrom(const HandlerGroup& group, std::span<const HandlerGroup> earlier) {
  const auto with = [&](const std::string& handler) {
    return std::find_if(earlier.begin(), earlier.end(), [&](const HandlerGroup& candidate) {
      return std::find(candidate.handlers.begin(), candidate.handlers.end(), handler) !=
             candidate.handlers.end();
    });
  };
  auto found = group.handlers.empty() ? earlier.end() : with(group.handlers.front());
  if (found == earlier.end()) found = with(kEveryOther);
  if (found == earlier.end()) {
    found = std::find_if(earlier.begin(), earlier.end(),
                         [](const HandlerGroup& candidate) { return candidate.name == kDefaultGroup; });
  }
  return found == earlier.end() ? "" : found->name;
}

}  // namespace millrace::engine
