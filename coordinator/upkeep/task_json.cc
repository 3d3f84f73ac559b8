#include "coordinator/upkeep/task_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "coordinator/coordination/json_text.h"
#include "framework/base/time_text.h"
#include "framework/task/expiry.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

ordered_json TextOrNull(const std::string& text) {
  return text.empty() ? ordered_json() : ordered_json(text);
}

std::string OnOneLine(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

// Within JSON, breaks of lines stand between its parts alone. The parser takes a zero byte for the end, and
// skips a byte order mark: both would spoil a line.
std::string AsWritten(std::string text) {
  const bool whole = text.find('\0') == text.npos && !text.starts_with('\xEF');
  if (!whole || IsTooDeep(text) || !ordered_json::accept(text)) return OnOneLine(text);
  std::ranges::replace(text, '\n', ' ');
  std::ranges::replace(text, '\r', ' ');
  return text;
}

// Params and progress are texts here.
ordered_json Members(const std::string& shard, const TaskRecord& record) {
  const Task& task = record.task;
  ordered_json out;
  out["name"] = ToString(TaskName{shard, task.key});
  out["id"] = task.key.id;
  out["state"] = ToString(task.state);
  out["handler"] = task.handler;
  out["priority"] = task.priority;
  out["slice"] = task.slice;
  out["run_at"] = FormatTime(task.run_at);
  out["params"] = task.params;
  out["key"] = TextOrNull(task.biz_key);
  out["batch"] = TextOrNull(task.batch);
  out["failures"] = task.failures;
  out["attempt"] = task.attempt;
  out["crashes"] = task.crashes;
  out["cancel"] = task.cancel;
  out["claimed_by"] = TextOrNull(task.claimed_by);
  out["claimed_at"] = TimeOrNull(task.claimed_at);
  out["last_error"] = TextOrNull(task.last_error);
  out["progress"] = TextOrNull(task.progress);
  out["created_at"] = FormatTime(task.created_at);
  out["expires_at"] = TimeOrNull(task.expires_at == kNeverExpires ? std::nullopt : task.expires_at);
  out["finished_at"] = TimeOrNull(record.finished_at);
  out["result"] = TextOrNull(record.result);
  out["idempotency_key"] = IdempotencyKey(shard, task);
  out["attempts"] = ordered_json::array();
  for (const AttemptRecord& attempt : record.attempts) {
    out["attempts"].push_back({{"attempt", attempt.attempt},
                               {"at", FormatTime(attempt.at)},
                               {"worker", attempt.incarnation},
                               {"kind", attempt.kind},
                               {"error_class", TextOrNull(attempt.error_class)},
                               {"message", attempt.message}});
  }
  return out;
}

}  // namespace

ordered_json JsonOrText(const std::string& text) {
  ordered_json value = ParseNode<ordered_json>(text);
  return value.is_discarded() ? ordered_json(text) : value;
}

ordered_json TimeOrNull(const std::optional<WallTime>& time) {
  return time ? ordered_json(FormatTime(*time)) : ordered_json();
}

ordered_json TaskToJson(const std::string& shard, const TaskRecord& record) {
  ordered_json out = Members(shard, record);
  for (const char* name : {"params", "progress"}) {
    if (out[name].is_string()) out[name] = JsonOrText(out[name].get<std::string>());
  }
  return out;
}

std::string TaskLine(const std::string& shard, const TaskRecord& record) {
  const ordered_json members = Members(shard, record);
  std::string line;
  for (const auto& [name, value] : members.items()) {
    const bool written = value.is_string() && (name == "params" || name == "progress");
    line += (line.empty() ? "{" : ",") + OnOneLine(name) + ":" +
            (written ? AsWritten(value.get<std::string>()) : OnOneLine(value));
  }
  return line + "}";
}

}  // namespace millrace::engine
