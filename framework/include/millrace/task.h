// What a handler is given and what it returns. Included by <millrace/handler.h>.
#pragma once

#include <millrace/json.h>
#include <millrace/plugin.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace {
inline namespace handler_v1 {

using Duration = std::chrono::microseconds;
using Time = std::chrono::sys_time<Duration>;  // UTC

namespace detail {
inline std::string_view View(const millrace_text& text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
}
inline millrace_text Text(std::string_view text) { return {text.data(), text.size()}; }
}  // namespace detail

// One task, as claimed for this attempt. Its texts live until Run returns. Not thread-safe.
class Task {
 public:
  explicit Task(const millrace_task& task) : task_(&task) {}

  std::string_view Name() const { return detail::View(task_->name); }        // shard/table/id
  std::string_view Handler() const { return detail::View(task_->handler); }  // the task type
  // The parameters; BadInput if they are not a JSON object.
  const Json& Params() const {
    if (!params_) {
      Json parsed = Json::Parse(ParamsText());
      if (!parsed.IsObject())
        throw BadInput(std::string("the parameters must be an object, are ") + parsed.KindName());
      params_ = std::move(parsed);
    }
    return *params_;
  }
  std::string_view ParamsText() const { return detail::View(task_->params); }
  std::string_view Key() const { return detail::View(task_->key); }      // the business key, may be empty
  std::string_view Batch() const { return detail::View(task_->batch); }  // may be empty
  // The same on every attempt: pass it to partners, so that they can tell a repetition.
  std::string_view IdempotencyKey() const { return detail::View(task_->idempotency_key); }
  // What an earlier attempt saved, may be empty.
  std::string_view Progress() const { return detail::View(task_->progress); }
  std::uint32_t Attempt() const { return task_->attempt; }    // 1 on the first
  std::uint32_t Failures() const { return task_->failures; }  // failed attempts so far
  std::uint32_t Priority() const { return task_->priority; }
  Time RunAt() const { return Time(Duration(task_->run_at_us)); }
  Time CreatedAt() const { return Time(Duration(task_->created_at_us)); }

 private:
  const millrace_task* task_;
  mutable std::optional<Json> params_;
};

// How an attempt ended. Made by the functions below.
struct Outcome {
  std::int32_t kind = MILLRACE_DONE;
  std::string text;
  std::string error_class;
  std::int64_t at_us = 0;
  std::int64_t delay_us = -1;

  // For Retry: instead of the configured ladder.
  Outcome After(Duration delay) && {
    delay_us = delay.count() < 0 ? 0 : delay.count();
    return std::move(*this);
  }
  Outcome At(Time time) && {
    at_us = time.time_since_epoch().count();
    return std::move(*this);
  }
  // Short and stable, for grouping: `timeout`, `http_503`.
  Outcome Class(std::string name) && {
    error_class = std::move(name);
    return std::move(*this);
  }
};

// It succeeded; the task's own transaction commits.
inline Outcome Done(std::string result = {}) { return {MILLRACE_DONE, std::move(result), {}, 0, -1}; }
// It failed and may succeed later: by the ladder, or After(…), or At(…). The transaction is rolled back, as
// it is for each of those below.
inline Outcome Retry(std::string why) { return {MILLRACE_RETRY, std::move(why), {}, 0, -1}; }
// It failed for good: to the failed pool now.
inline Outcome Fail(std::string why) { return {MILLRACE_FAIL, std::move(why), {}, 0, -1}; }
// Not yet; no failure.
inline Outcome Snooze(Duration delay) {
  return {MILLRACE_SNOOZE, {}, {}, 0, delay.count() < 0 ? 0 : delay.count()};
}
inline Outcome SnoozeUntil(Time time) {
  return {MILLRACE_SNOOZE, {}, {}, time.time_since_epoch().count(), 0};
}
// It need not be done any more: to the finished pool as skipped.
inline Outcome Skip(std::string why) { return {MILLRACE_SKIP, std::move(why), {}, 0, -1}; }

// A task to be added. `params` is a JSON object as text.
struct NewTask {
  std::string handler;
  std::string params = "{}";
  std::string key = {};
  std::string batch = {};
  std::optional<int> priority = {};  // 0 most urgent … 9
  std::optional<Time> run_at = {};
  Duration delay = Duration::zero();  // where run_at is not set
};

}  // namespace handler_v1
}  // namespace millrace
