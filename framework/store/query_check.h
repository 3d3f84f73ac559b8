// What may be a query whose rows become tasks: of `submit --from-query`, and of a fan-out. Pure.
#pragma once

#include <string_view>

#include "framework/base/result.h"

namespace millrace::engine {

// One statement that reads: it begins with SELECT, WITH or VALUES, and nothing follows it, and it
// holds no INTO: the server would write the file before anybody could refuse the result. Invalid with what to
// write instead. (It runs in a transaction that is rolled back, so that a WITH that changes rows changes
// none.)
Status CheckQuery(std::string_view sql);

}  // namespace millrace::engine
