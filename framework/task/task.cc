#include "framework/task/task.h"

#include <charconv>
#include <iterator>

#include "framework/base/escape.h"
#include "framework/base/utf8.h"
#include "framework/task/expiry.h"

namespace millrace::engine {
namespace {

using To = Settlement::To;

constexpr OutcomeRule kOutcomeRules[] = {
    {To::Succeeded, false, false},  // Done: in the enum's order
    {To::Waiting, true, true},      // Retry
    {To::Failed, true, false},      // Fail
    {To::Waiting, false, true},     // Snooze
    {To::Cancelled, false, false},  // Skip
    {To::Waiting, false, false},    // GiveBack
    {To::Cancelled, false, false},  // Cancel
    {To::Held, true, false},        // Hold
};
static_assert(std::size(kOutcomeRules) == static_cast<std::size_t>(OutcomeKind::Hold) + 1);

void AppendName(std::string& text, std::string_view shard, const TaskKey& key) {
  text.append(shard).append("/").append(key.table).append("/").append(std::to_string(key.id));
}

}  // namespace

const OutcomeRule& RuleOf(OutcomeKind kind) { return kOutcomeRules[static_cast<int>(kind)]; }

const char* ToString(TaskState state) {
  switch (state) {
    case TaskState::Waiting:
      return "waiting";
    case TaskState::Succeeded:
      return "succeeded";
    case TaskState::Running:
      return "running";
    case TaskState::Held:
      return "held";
    case TaskState::Cancelled:
      return "cancelled";
    case TaskState::Failed:
      return "failed";
  }
  return "unknown";
}

Result<TaskState> ParseTaskState(std::string_view text) {
  for (TaskState state : {TaskState::Waiting, TaskState::Succeeded, TaskState::Running, TaskState::Held,
                          TaskState::Cancelled, TaskState::Failed}) {
    if (text == ToString(state)) return state;
  }
  return Fail(ErrorCode::Invalid, "'" + Excerpt(text) +
                                      "' is no task state; it is one of waiting, running, held, succeeded, "
                                      "cancelled, failed");
}

std::optional<TableName> ParseTableName(std::string_view text) {
  if (!TableName::IsValid(text)) return std::nullopt;
  TableName table;
  table.Take(text);
  return table;
}

std::string ToString(const TaskKey& key) { return key.table + "/" + std::to_string(key.id); }

std::string ToString(const TaskName& name) {
  std::string text;
  AppendName(text, name.shard, name.key);
  return text;
}

Result<TaskName> ParseTaskName(std::string_view text, const TaskName& home) {
  const std::string_view whole = text;
  TaskName name = home;
  const std::size_t last = text.rfind('/');
  const std::string_view number = last == std::string_view::npos ? text : text.substr(last + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), name.key.id);
  if (error != std::errc() || end != number.data() + number.size() || number.empty()) {
    return Fail(ErrorCode::Invalid,
                "'" + Excerpt(whole) + "' is not a task name; write shard/table/id, or the id alone");
  }
  if (last == std::string_view::npos) return name;
  text = text.substr(0, last);
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    name.shard = std::string(text.substr(0, slash));
    text = text.substr(slash + 1);
  }
  const auto table = ParseTableName(text);
  if (!table || name.shard.empty()) {
    return Fail(ErrorCode::Invalid, "'" + Excerpt(whole) + "' is not a task name; write shard/table/id");
  }
  name.key.table = *table;
  return name;
}

bool IsHandlerName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxHandlerName && name[0] >= 'a' && name[0] <= 'z' &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == name.npos;
}

Status Validate(const NewTask& task) {
  if (!IsHandlerName(task.handler)) {
    return Fail(ErrorCode::Invalid, "'" + Shorten(task.handler, 80) +
                                        "' is not a handler name: lower-case letters, digits, '_' and '.', "
                                        "beginning with a letter, at most 64");
  }
  if (task.params.size() > kMaxParams) {
    return Fail(ErrorCode::Invalid,
                "params are " + std::to_string(task.params.size()) +
                    " bytes, the limit is 65536: keep large input elsewhere and pass its name");
  }
  const std::size_t begin = std::min(task.params.find_first_not_of(" \t\r\n"), task.params.size());
  if (task.params.substr(begin, 1) != "{") {
    return Fail(ErrorCode::Invalid, "the params are no JSON object, such as {\"id\":1}: '" +
                                        Excerpt(std::string_view(task.params).substr(begin)) + "'");
  }
  if (task.biz_key.size() > kMaxKey) return Fail(ErrorCode::Invalid, "the key is longer than 190 bytes");
  if (task.batch.size() > kMaxBatchName)
    return Fail(ErrorCode::Invalid, "the batch name is longer than 64 bytes");
  // To a server it is the name without the space.
  if (task.batch.ends_with(' ')) return Fail(ErrorCode::Invalid, "the batch name ends with a space");
  if (task.priority && *task.priority > 9) {
    return Fail(ErrorCode::Invalid,
                "priority " + std::to_string(*task.priority) + " is not in 0 (most urgent) … 9");
  }
  return CheckExpiry(task, std::nullopt);
}

std::string IdempotencyKey(std::string_view shard, const Task& task) {
  constexpr std::size_t kNumbers = 48;  // two of them, and what stands between
  std::string key;
  key.reserve(shard.size() + task.key.table.text().size() + kNumbers);
  AppendName(key, shard, task.key);
  return key.append("@").append(std::to_string(task.created_at.time_since_epoch().count()));
}

std::string Shorten(std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return std::string(text);
  std::size_t end = limit;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end));
}

std::string Storable(std::string_view text, std::size_t limit) {
  if (text.empty()) return {};
  return Shorten(EscapeBroken(Shorten(text, limit)), limit);
}

}  // namespace millrace::engine
