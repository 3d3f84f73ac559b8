// A limit of the whole cluster, divided over the workers that use it. Pure.
//
// By max-min fairness (Bertsekas and Gallager, Data Networks, 6.5.2): nobody gets more while another that
// could use it has less; what some don't use is the others'. Each has a small part in any case, so that a
// newcomer can begin. The sum of what may be in force never exceeds the limit: a share is raised only by what
// nobody can use any more, so whoever is to give some up gets a lower share first, and the others get it once
// that is known to be in force. Places and permits are lowered and raised by one rule, so that between them
// nothing waits but for what runs: the permits grow by each place that ends, and the places by each task that
// ends with a permit.
#pragma once

#include <map>
#include <string>

#include "framework/policy/limit_shares.h"
#include "framework/policy/rate_turns.h"

namespace millrace::engine {

// Somebody who has a share, or should get one.
struct ShareHolder {
  LimitShare written = {};  // its share, as it was written last
  // At most that is in force: of what was written, as long as it may not have been replaced; and what still
  // runs of what it had. Never less than `written`.
  LimitShare in_force = {};
  bool takes = false;  // its share may be changed: it is there, and an owner
  LimitUse use = {};   // as it told last
};

// The shares that should be written next, of all that take: as they are where nothing need be changed.
// `limit`: the whole. `turns`: its own, where its rate is slow.
LimitShares DivideLimit(const LimitShare& limit, const std::map<std::string, ShareHolder>& holders,
                        RateTurns& turns, BootTime now);

}  // namespace millrace::engine
