// A task as one JSON object, as the commands and the exports write it. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "framework/store/task_operations.h"

namespace millrace::engine {

// The text's own JSON where it is JSON, and not too deep (IsTooDeep).
nlohmann::ordered_json JsonOrText(const std::string& text);
// In RFC 3339.
nlohmann::ordered_json TimeOrNull(const std::optional<WallTime>& time);

// One object with every member, times in RFC 3339; params and progress as JSON where they are JSON.
nlohmann::ordered_json TaskToJson(const std::string& shard, const TaskRecord& record);
// The same on one line, with params and progress as they were written: numbers may be longer than a
// program's, and members doubled.
std::string TaskLine(const std::string& shard, const TaskRecord& record);

}  // namespace millrace::engine
