// What a worker tells of itself in its status node. Pure.
#pragma once

#include <string>

#include "coordinator/member/member_view.h"

namespace millrace::engine {

// `more`: what the worker adds, one JSON object. Never longer than a third of what a node may hold: of many
// refusals the first are told, of long ones the beginning; where that is not enough only the numbers of
// `more`.
std::string StatusText(const std::string& incarnation, const MemberView& view, const std::string& more);

}  // namespace millrace::engine
