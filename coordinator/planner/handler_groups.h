// Which handlers are owned together. Pure.
//
// A worker that owns a slice has to be able to run all of its tasks. So where workers differ in the handlers
// that they accept, handlers that the same workers accept become a group, and each group has slices of its
// own. Handlers that the configuration puts into a group stay there, whatever the workers accept.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "framework/policy/eligibility.h"

namespace millrace::engine {

// Stands in a group's list for every handler that no group names. No handler is called so: only a worker
// that accepts every handler accepts it.
inline constexpr const char* kEveryOther = "*";

struct HandlerGroup {
  std::string name;
  // Sorted, those of the program itself (`millrace.`) behind the others, kEveryOther last. A worker may own
  // the group's slices if it accepts all of these.
  std::vector<std::string> handlers;
  bool operator==(const HandlerGroup&) const = default;
};

using AcceptedHandlers = Limit<std::string>;

// The groups for these live workers, sorted by name; `configured` is handler → group, for handlers whose
// group is not kDefaultGroup. Handlers that no worker accepts are in no derived group: nobody could own it.
//
// Where all handlers that are left to derive are accepted by the same workers, they are one group,
// kDefaultGroup. Otherwise each group is called by the first of its handlers, in the order of the alphabet
// (with a `-` behind it where that name is taken), and kDefaultGroup is the one with
// kEveryOther, if there is a worker that accepts it. Its owner takes every handler that no other group names.
std::vector<HandlerGroup> DeriveGroups(std::span<const AcceptedHandlers> workers,
                                       const std::map<std::string, std::string>& configured);

// The group of an earlier derivation whose owner counts as the present owner of `group`: the one that had the
// first of its handlers, else that with every other handler, else kDefaultGroup; "" where there is none. So
// that groups which split or merge move no slice that may stay.
std::string CarriedFrom(const HandlerGroup& group, std::span<const HandlerGroup> earlier);

}  // namespace millrace::engine
