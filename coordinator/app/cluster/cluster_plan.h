// millrace cluster plan: what would move, in the live cluster or in one that a file describes.
#pragma once

#include <string_view>

#include "coordinator/planner/named_input.h"
#include "framework/base/result.h"

namespace millrace::engine {

// {"workers":[{"id","weight","handlers":[…]|null,"slices":[…]|null}], "slices":[{"id","group"}],
//  "groups":{group: [handler, …]}, "current":{slice: worker}}; `//` comments are allowed. Of these `weight`
// (1), `handlers` and `slices` of a worker (null: all), `groups` and `current` (empty) may be left out; a
// slice whose worker is null has none. Invalid, with a line for each problem that begins `SOURCE:LINE: key:
// `, for anything else: other types, unknown keys, doubled keys and ids. Pure.
Result<NamedInput> ReadPlanInput(std::string_view text, std::string_view source);

}  // namespace millrace::engine
