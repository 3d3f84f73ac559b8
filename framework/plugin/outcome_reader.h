// Turns what a plugin says of a task into an Outcome, whatever it says. Pure.
#pragma once

#include <millrace/plugin.h>

#include <string>
#include <string_view>

#include "framework/task/outcome.h"

namespace millrace::engine {

std::string_view View(const millrace_text& text);
inline millrace_text ToText(std::string_view text) { return {text.data(), text.size()}; }

// A Retry of class `bad_outcome`, for a handler that broke its contract.
Outcome BadOutcome(std::string why);

// Texts are made storable; an unknown kind, an impossible time or a struct too small give
// a BadOutcome.
Outcome ReadOutcome(const millrace_outcome* outcome);

}  // namespace millrace::engine
