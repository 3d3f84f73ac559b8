// What `submit --from-query` sends. Pure.
#pragma once

#include <string_view>

#include "framework/base/result.h"

namespace millrace::engine {

// One statement that reads: it begins with SELECT, WITH or VALUES, and nothing follows it, and it
// holds no INTO: the server would write the file before anybody could refuse the result. Invalid with what to
// write instead. (It runs in a transaction that is rolled back, so that a WITH that changes rows changes
// none.)
Status CheckQuery(std::string_view sql);

// The store's error as `submit` reports it; where the query gives too many rows, with how to split it.
Error QueryError(Error error);

}  // namespace millrace::engine
