#include "coordinator/app/task_text.h"

#include "coordinator/app/progress_line.h"
#include "coordinator/app/text_table.h"
#include "framework/base/time_text.h"

namespace millrace::engine {

using nlohmann::ordered_json;

namespace {

ordered_json JsonOrText(const std::string& text) {
  ordered_json value = ordered_json::parse(text, nullptr, false);
  return value.is_discarded() ? ordered_json(text) : value;
}

ordered_json TextOrNull(const std::string& text) {
  return text.empty() ? ordered_json() : ordered_json(text);
}
ordered_json TimeOrNull(const std::optional<WallTime>& time) {
  return time ? ordered_json(FormatTime(*time)) : ordered_json();
}

std::string TimeText(WallTime time, WallTime now) {
  return FormatTime(time) + " (" + Relative(time, now) + ")";
}

std::string NumberText(std::uint32_t number) { return number == 0 ? "" : std::to_string(number); }

}  // namespace

std::string Relative(WallTime time, WallTime now) {
  const Micros distance = time > now ? time - now : now - time;
  if (distance < std::chrono::seconds(1)) return "now";
  return time > now ? "in " + ElapsedText(distance) : ElapsedText(distance) + " ago";
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

std::string TaskToText(const std::string& shard, const TaskRecord& record, WallTime now, std::size_t width) {
  const Task& task = record.task;
  const bool waits = task.state == TaskState::Waiting;
  std::string text = FieldText({
      {"task", ToString(TaskName{shard, task.key})},
      {"state", std::string(ToString(task.state)) + (task.cancel ? " (asked to stop)" : "")},
      {"handler", task.handler},
      {"params", task.params, true},
      {"key", task.biz_key},
      {"batch", task.batch},
      {"priority", std::to_string(task.priority)},
      {"slice", std::to_string(task.slice)},
      {"created", TimeText(task.created_at, now)},
      {waits ? "due" : "was due", TimeText(task.run_at, now)},
      {"claimed", task.claimed_at ? TimeText(*task.claimed_at, now) : ""},
      {"claimed by", task.claimed_by},
      {"finished", record.finished_at ? TimeText(*record.finished_at, now) : ""},
      {"attempts", std::to_string(task.attempt)},
      {"failures", NumberText(task.failures)},
      {"crashes", NumberText(task.crashes)},
      {"result", record.result},
      {"last error", task.last_error},
      {"progress", task.progress, ordered_json::accept(task.progress)},
  });
  if (record.attempts.empty()) return text;
  TextTable table{{{"attempt", true}, {"when"}, {"worker"}, {"how"}, {"class"}, {"why"}}, {}};
  for (const AttemptRecord& attempt : record.attempts) {
    table.rows.push_back({std::to_string(attempt.attempt), FormatTime(attempt.at), attempt.incarnation,
                          attempt.kind, attempt.error_class, attempt.message});
  }
  return text + "\n\nAttempts that did not succeed\n" + table.Text(width);
}

}  // namespace millrace::engine
