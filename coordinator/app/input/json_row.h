// The params of tasks as people write them. Pure.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/result.h"
#include "framework/task/task.h"

namespace millrace::engine {

// Invalid, with where it goes wrong, for a text that is not one JSON object, or in which an object has two
// members of one name: readers of JSON differ in which of them counts.
Status CheckParams(std::string_view text);

// Whether both texts, which are JSON, say the same: spaces, the order of members and the spelling of numbers
// are nothing.
bool SaysTheSame(std::string_view a, std::string_view b);

// A line of JSONL: {"params":{…},"key","at","in","priority","batch","expires_at","expires_in"}, or the bare
// params. What it does not say comes from `defaults`; with `key_column` the key is that member of the params.
Result<NewTask> LineToTask(std::string_view line, const NewTask& defaults, const std::string& key_column);

}  // namespace millrace::engine
