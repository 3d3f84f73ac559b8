// What the engine does for a running handler. Included by <millrace/handler.h>.
#pragma once

#include <millrace/task.h>

#include <algorithm>
#include <initializer_list>
#include <span>
#include <thread>
#include <variant>
#include <vector>

namespace millrace {
inline namespace handler_v1 {

// The engine refused or could not do what was asked. Let it escape: the attempt fails with its message. After
// a failed SQL statement the task's transaction can only be rolled back, whatever the handler returns.
class EngineError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

using SqlValue = std::variant<std::nullptr_t, std::int64_t, double, std::string>;

struct Rows {
  std::vector<std::string> columns;
  std::vector<std::vector<std::optional<std::string>>> rows;  // SQL NULL: nullopt
  bool Empty() const { return rows.empty(); }
};

// Becomes true when the attempt should end, and stays so (see <millrace/handler.h>, Cancellation). Copyable,
// thread-safe; valid until Run returns.
class StopToken {
 public:
  StopToken(const millrace_host* host, const millrace_call* call) : host_(host), call_(call) {}
  bool stop_requested() const { return host_->should_stop(call_) != 0; }

 private:
  const millrace_host* host_;
  const millrace_call* call_;
};

// One call of a handler. Used on the thread of Run alone, but for Stop, ShouldStop, TimeLeft, Deadline and
// WaitFor.
class Context {
 public:
  Context(const millrace_host* host, millrace_call* call) : host_(host), call_(call) {}

  StopToken Stop() const { return {host_, call_}; }
  bool ShouldStop() const { return host_->should_stop(call_) != 0; }
  Duration TimeLeft() const { return Duration(host_->time_left_us(call_)); }
  std::chrono::steady_clock::time_point Deadline() const {
    return std::chrono::steady_clock::now() + TimeLeft();
  }
  // Waits so long, or until the attempt should stop: then it returns false.
  bool WaitFor(Duration duration) const {
    const auto end = std::chrono::steady_clock::now() + duration;
    while (!ShouldStop()) {
      const auto left = end - std::chrono::steady_clock::now();
      if (left <= left.zero()) return true;
      std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(left, std::chrono::milliseconds(20)));
    }
    return false;
  }

  void Info(std::string_view message) { host_->log(call_, MILLRACE_LOG_INFO, detail::Text(message)); }
  void Warning(std::string_view message) { host_->log(call_, MILLRACE_LOG_WARNING, detail::Text(message)); }
  void Error(std::string_view message) { host_->log(call_, MILLRACE_LOG_ERROR, detail::Text(message)); }

  // Shown to people, and given to the task's next attempt. At most 4096 bytes of UTF-8. Not part of the
  // transaction: it is written within about a second, with the task's end at the latest, and stays whatever
  // the outcome is; the last one counts. `index` is the task's place among those of a
  // BatchHandler's call.
  void SaveProgress(std::string_view progress, std::size_t index = 0) {
    millrace_text error{};
    Check(host_->save_progress(call_, index, detail::Text(progress), &error), error);
  }

  // SQL in the task's own transaction, which commits when the outcome is Done, and is rolled back with every
  // other. `?` stands for a value. Execute returns the rows affected. COMMIT, DDL and the like are refused; a
  // procedure that is CALLed may not do them either: where one did, the task goes to the failed pool as one
  // that may have taken effect.
  std::uint64_t Execute(std::string_view sql, std::span<const SqlValue> values) {
    return Send(sql, values, nullptr);
  }
  std::uint64_t Execute(std::string_view sql, std::initializer_list<SqlValue> values = {}) {
    return Send(sql, std::span(values.begin(), values.size()), nullptr);
  }
  Rows Query(std::string_view sql, std::span<const SqlValue> values) {
    Rows rows;
    Send(sql, values, &rows);
    return rows;
  }
  Rows Query(std::string_view sql, std::initializer_list<SqlValue> values = {}) {
    return Query(sql, std::span(values.begin(), values.size()));
  }

  // Adds a task in that transaction; false if its key is taken.
  bool Submit(const NewTask& task) {
    const millrace_new_task raw{sizeof raw,
                                task.priority.value_or(-1),
                                task.run_at ? task.run_at->time_since_epoch().count() : 0,
                                task.delay.count(),
                                detail::Text(task.handler),
                                detail::Text(task.params),
                                detail::Text(task.key),
                                detail::Text(task.batch)};
    std::int32_t added = 0;
    millrace_text error{};
    Check(host_->submit(call_, &raw, &added, &error), error);
    return added != 0;
  }

 private:
  static void Check(std::int32_t code, const millrace_text& error) {
    if (code != MILLRACE_OK) throw EngineError(std::string(detail::View(error)));
  }

  static millrace_value Raw(const SqlValue& value) {
    millrace_value raw{};
    if (const auto* integer = std::get_if<std::int64_t>(&value)) {
      raw.kind = MILLRACE_INTEGER;
      raw.integer = *integer;
    } else if (const auto* real = std::get_if<double>(&value)) {
      raw.kind = MILLRACE_REAL;
      raw.real = *real;
    } else if (const auto* text = std::get_if<std::string>(&value)) {
      raw.kind = MILLRACE_TEXT;
      raw.text = detail::Text(*text);
    }
    return raw;
  }

  static std::int32_t Receive(void* receiver, const millrace_text* columns, const millrace_text* cells,
                              std::size_t count) noexcept try {
    auto& rows = *static_cast<Rows*>(receiver);
    if (rows.columns.empty()) {
      for (std::size_t i = 0; i < count; ++i) rows.columns.emplace_back(detail::View(columns[i]));
    }
    auto& row = rows.rows.emplace_back();
    for (std::size_t i = 0; i < count; ++i) {
      if (cells[i].data == nullptr) {
        row.emplace_back(std::nullopt);
      } else {
        row.emplace_back(std::string(detail::View(cells[i])));
      }
    }
    return 0;
  } catch (...) {
    return 1;
  }

  std::uint64_t Send(std::string_view sql, std::span<const SqlValue> values, Rows* rows) {
    std::vector<millrace_value> raw;
    raw.reserve(values.size());
    for (const SqlValue& value : values) raw.push_back(Raw(value));
    std::uint64_t affected = 0;
    millrace_text error{};
    Check(host_->sql(call_, detail::Text(sql), raw.data(), raw.size(), rows == nullptr ? nullptr : &Receive,
                     rows, &affected, &error),
          error);
    return affected;
  }

  const millrace_host* host_;
  millrace_call* call_;
};

}  // namespace handler_v1
}  // namespace millrace
