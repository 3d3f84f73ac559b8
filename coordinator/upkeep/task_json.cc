#include "coordinator/upkeep/task_json.h"

#include <nlohmann/json.hpp>

#include "framework/base/time_text.h"
#include "framework/task/expiry.h"

namespace millrace::engine {
namespace {

using nlohmann::ordered_json;

ordered_json TextOrNull(const std::string& text) {
  return text.empty() ? ordered_json() : ordered_json(text);
}

}  // namespace

ordered_json JsonOrText(const std::string& text) {
  ordered_json value = ordered_json::parse(text, nullptr, false);
  return value.is_discarded() ? ordered_json(text) : value;
}

ordered_json TimeOrNull(const std::optional<WallTime>& time) {
  return time ? ordered_json(FormatTime(*time)) : ordered_json();
}

ordered_json TaskToJson(const std::string& shard, const TaskRecord& record) {
  const Task& task = record.task;
  ordered_json out;
  out["name"] = ToString(TaskName{shard, task.key});
  out["id"] = task.key.id;
  out["state"] = ToString(task.state);
  out["handler"] = task.handler;
  out["priority"] = task.priority;
  out["slice"] = task.slice;
  out["run_at"] = FormatTime(task.run_at);
  out["params"] = JsonOrText(task.params);
  out["key"] = TextOrNull(task.biz_key);
  out["batch"] = TextOrNull(task.batch);
  out["failures"] = task.failures;
  out["attempt"] = task.attempt;
  out["crashes"] = task.crashes;
  out["cancel"] = task.cancel;
  out["claimed_by"] = TextOrNull(task.claimed_by);
  out["claimed_at"] = TimeOrNull(task.claimed_at);
  out["last_error"] = TextOrNull(task.last_error);
  out["progress"] = task.progress.empty() ? ordered_json() : JsonOrText(task.progress);
  out["created_at"] = FormatTime(task.created_at);
  out["expires_at"] = TimeOrNull(task.expires_at == kNeverExpires ? std::nullopt : task.expires_at);
  out["finished_at"] = TimeOrNull(record.finished_at);
  out["result"] = TextOrNull(record.result);
  out["idempotency_key"] = IdempotencyKey(TaskName{shard, task.key}, task.created_at);
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

}  // namespace millrace::engine
