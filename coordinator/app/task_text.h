// A task as people and as programs read it. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "framework/store/task_desk.h"

namespace millrace::engine {

// One object with every member, times in RFC 3339; params and progress as JSON where they are JSON.
nlohmann::ordered_json TaskToJson(const std::string& shard, const TaskRecord& record);

// Everything, for a person: the fields, then the table of failed attempts.
std::string TaskToText(const std::string& shard, const TaskRecord& record, WallTime now, std::size_t width);

// `in 5 min`, `3 s ago`, `now`.
std::string Relative(WallTime time, WallTime now);

}  // namespace millrace::engine
