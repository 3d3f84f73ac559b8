#include "framework/plugin/plugin_call.h"

#include <millrace/json.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <exception>
#include <memory_resource>

#include "framework/base/utf8.h"
#include "framework/plugin/abi.h"

namespace millrace::engine {
namespace {

constexpr std::int64_t kLatestTime =
    253'402'300'799'000'000;  // 9999-12-31T23:59:59Z, as far as a DATETIME goes
constexpr std::int64_t kLongestDelay = 100LL * 366 * 86'400 * 1'000'000;

// Of a task of which the plugin has said nothing: none can say that.
constexpr OutcomeKind kUnsaid = OutcomeKind::GiveBack;

// False where the time is impossible.
bool ReadTime(const millrace_outcome& raw, Outcome& outcome) {
  if (raw.at_us != 0) {
    if (raw.at_us < 0 || raw.at_us > kLatestTime) return false;
    outcome.at = WallTime(Micros(raw.at_us));
    return true;
  }
  if (raw.delay_us == -1 && outcome.kind == OutcomeKind::Retry) return true;
  if (raw.delay_us < 0 || raw.delay_us > kLongestDelay) return false;
  outcome.delay = Micros(raw.delay_us);
  return true;
}

PluginCall& Of(const millrace_call* call) {
  return *const_cast<PluginCall*>(reinterpret_cast<const PluginCall*>(call));
}

Result<std::vector<SqlValue>> ReadValues(const millrace_value* values, std::size_t count) {
  std::vector<SqlValue> read;
  read.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    switch (values[i].kind) {
      case MILLRACE_NULL:
        read.emplace_back(std::monostate{});
        break;
      case MILLRACE_INTEGER:
        read.emplace_back(values[i].integer);
        break;
      case MILLRACE_REAL:
        read.emplace_back(values[i].real);
        break;
      case MILLRACE_TEXT:
        read.emplace_back(std::string(View(values[i].text)));
        break;
      default:
        return Fail(ErrorCode::Invalid, "value " + std::to_string(i + 1) +
                                            " of the SQL is of the unknown kind " +
                                            std::to_string(values[i].kind));
    }
  }
  return read;
}

// The cells of a row as the ABI has them; NULL is a null pointer.
void DeliverRows(const SqlResult& result, millrace_row_fn row, void* receiver) {
  std::vector<millrace_text> columns;
  for (const std::string& column : result.columns) columns.push_back(ToText(column));
  std::vector<millrace_text> cells(columns.size());
  for (const auto& source : result.rows) {
    cells.resize(source.size());
    for (std::size_t i = 0; i < source.size(); ++i)
      cells[i] = source[i] ? ToText(*source[i]) : millrace_text{};
    if (row(receiver, columns.data(), cells.data(), cells.size()) != 0) return;
  }
}

Result<NewTask> ReadNewTask(const millrace_new_task* given) {
  const auto raw = ReadStruct(given);
  if (!raw) {
    return Fail(ErrorCode::Invalid, "the new task's struct is missing or too small; rebuild the plugin");
  }
  NewTask task;
  task.handler = View(raw->handler);
  task.params = raw->params.size == 0 ? "{}" : std::string(View(raw->params));
  task.biz_key = View(raw->key);
  task.batch = View(raw->batch);
  if (raw->priority >= 0) task.priority = static_cast<std::uint32_t>(raw->priority);
  if (raw->run_at_us != 0) {
    task.run_at = WallTime(Micros(raw->run_at_us));
  } else if (raw->delay_us != 0) {
    task.delay = Micros(raw->delay_us);
  }
  BOOST_OUTCOME_TRYV(Validate(task));
  try {
    Json::Parse(task.params);
  } catch (const BadInput& error) {
    return Fail(ErrorCode::Invalid, std::string("the new task's params are ") + error.what());
  }
  return task;
}

}  // namespace

std::string_view View(const millrace_text& text) {
  return text.data == nullptr ? std::string_view() : std::string_view(text.data, text.size);
}

Outcome BadOutcome(std::string why) {
  Outcome outcome;
  outcome.kind = OutcomeKind::Retry;
  outcome.text =
      "the handler's outcome is not usable: " + std::move(why) + "; this is a defect of the plugin";
  outcome.error_class = "bad_outcome";
  return outcome;
}

Outcome ReadOutcome(const millrace_outcome* given) {
  if (given == nullptr) return BadOutcome("it is a null pointer");
  const auto raw = ReadStruct(given);
  if (!raw) return BadOutcome("its struct is too small");
  constexpr OutcomeKind kKinds[] = {OutcomeKind::Done, OutcomeKind::Retry, OutcomeKind::Fail,
                                    OutcomeKind::Snooze, OutcomeKind::Skip};
  static_assert(std::find(std::begin(kKinds), std::end(kKinds), kUnsaid) == std::end(kKinds));
  if (raw->kind < MILLRACE_DONE || raw->kind > MILLRACE_SKIP) {
    return BadOutcome("there is no kind " + std::to_string(raw->kind));
  }
  Outcome outcome;
  outcome.kind = kKinds[raw->kind];
  outcome.text = Storable(View(raw->text));
  outcome.error_class = Storable(View(raw->error_class), kMaxErrorClass);
  if (RuleOf(outcome.kind).says_when && !ReadTime(*raw, outcome)) {
    return BadOutcome("its time or delay is impossible (" + std::to_string(raw->at_us) + " us, delay " +
                      std::to_string(raw->delay_us) + " us)");
  }
  return outcome;
}

millrace_task RawTask(const Task& task, std::string_view idempotency_key) {
  millrace_task raw{};
  raw.struct_size = sizeof raw;
  raw.attempt = task.attempt;
  raw.failures = task.failures;
  raw.priority = task.priority;
  raw.run_at_us = task.run_at.time_since_epoch().count();
  raw.created_at_us = task.created_at.time_since_epoch().count();
  raw.name = ToText(NameIn(idempotency_key));
  raw.handler = ToText(task.handler);
  raw.params = ToText(task.params);
  raw.key = ToText(task.biz_key);
  raw.batch = ToText(task.batch);
  raw.idempotency_key = ToText(idempotency_key);
  raw.progress = ToText(task.progress);
  return raw;
}

struct PluginCall::HostFunctions {
  // Runs `body`, which gives a Status; what it throws becomes an error too, so that nothing crosses the
  // border.
  template <class Body>
  static std::int32_t Guarded(millrace_call* call, millrace_text* error, Body body) noexcept {
    PluginCall& self = Of(call);
    try {
      const Status status = body(self);
      return status ? MILLRACE_OK : self.Refuse(status.error().message, error);
    } catch (const std::exception& exception) {
      return self.Refuse(exception.what(), error);
    } catch (...) {
      return self.Refuse("an unknown error of the engine", error);
    }
  }

  static std::int32_t ShouldStop(const millrace_call* call) noexcept {
    return Of(call).context_.ShouldStop() ? 1 : 0;
  }
  static std::int64_t TimeLeft(const millrace_call* call) noexcept {
    return Of(call).context_.TimeLeft().count();
  }

  static void Log(millrace_call* call, std::int32_t level, millrace_text message) noexcept {
    Guarded(call, nullptr, [&](PluginCall& self) -> Status {
      const LogLevel as = level == MILLRACE_LOG_ERROR     ? LogLevel::Error
                          : level == MILLRACE_LOG_WARNING ? LogLevel::Warning
                                                          : LogLevel::Info;
      self.context_.Log(self.Meant(0), as, Shorten(View(message)));
      return {};
    });
  }

  static std::int32_t SaveProgress(millrace_call* call, std::size_t index, millrace_text progress,
                                   millrace_text* error) noexcept {
    return Guarded(call, error, [&](PluginCall& self) -> Status {
      const std::string_view text = View(progress);
      index = self.Meant(index);
      if (index >= self.tasks_.size()) {
        return Fail(ErrorCode::Invalid, "progress for task " + std::to_string(index) + " of a call with " +
                                            std::to_string(self.tasks_.size()));
      }
      if (text.size() > kMaxText) {
        return Fail(ErrorCode::Invalid, "progress of " + std::to_string(text.size()) + " bytes; at most " +
                                            std::to_string(kMaxText) + " are kept");
      }
      if (!IsUtf8(text)) return Fail(ErrorCode::Invalid, "progress is not UTF-8; encode binary data");
      return self.context_.SaveProgress(index, text);
    });
  }

  static std::int32_t Sql(millrace_call* call, millrace_text statement, const millrace_value* values,
                          std::size_t count, millrace_row_fn row, void* receiver, std::uint64_t* affected,
                          millrace_text* error) noexcept {
    return Guarded(call, error, [&](PluginCall& self) -> Status {
      BOOST_OUTCOME_TRY(read, ReadValues(values, count));
      BOOST_OUTCOME_TRY(result, self.context_.Execute(View(statement), read));
      if (affected != nullptr) *affected = result.affected;
      if (row != nullptr) DeliverRows(result, row, receiver);
      return {};
    });
  }

  static std::int32_t Submit(millrace_call* call, const millrace_new_task* task, std::int32_t* added,
                             millrace_text* error) noexcept {
    return Guarded(call, error, [&](PluginCall& self) -> Status {
      BOOST_OUTCOME_TRY(read, ReadNewTask(task));
      BOOST_OUTCOME_TRY(result, self.context_.Submit(read));
      if (added != nullptr) *added = result ? 1 : 0;
      return {};
    });
  }

  static void Settle(millrace_call* call, std::size_t index, const millrace_outcome* outcome) noexcept {
    Guarded(call, nullptr, [&](PluginCall& self) -> Status {
      if (index == MILLRACE_ALL_TASKS) {
        self.outcomes_.assign(self.outcomes_.size(), ReadOutcome(outcome));
        self.context_.Throw();
      } else if (index < self.outcomes_.size()) {
        self.outcomes_[index] = ReadOutcome(outcome);
      } else {
        self.beyond_ = true;
      }
      return {};
    });
  }

  static std::int32_t BeginTask(millrace_call* call, std::size_t index) noexcept {
    return Guarded(call, nullptr, [&](PluginCall& self) -> Status {
      self.EndTask();
      self.told_ = true;
      if (index == MILLRACE_ALL_TASKS) {
        self.context_.BeginTogether();
        return {};
      }
      if (index >= self.outcomes_.size()) return Fail(ErrorCode::Invalid, "this call has no such task");
      self.current_ = index;
      if (self.context_.BeginTask(index)) return {};
      return Fail(ErrorCode::Conflict, "the tasks of this call run again, each alone");
    });
  }

  static constexpr millrace_host kTable = {
      sizeof(millrace_host), &ShouldStop, &TimeLeft, &Log, &SaveProgress, &Sql, &Submit, &Settle, &BeginTask};
};

PluginCall::PluginCall(std::span<const Task* const> tasks, CallContext& context)
    : tasks_(tasks), context_(context), outcomes_(tasks.size(), {kUnsaid, {}, {}, {}, {}}) {}

std::int32_t PluginCall::Refuse(std::string why, millrace_text* error) {
  error_ = std::move(why);
  if (error != nullptr) *error = ToText(error_);
  return MILLRACE_ERROR;
}

void PluginCall::RunHandler(const millrace_handler& handler, void* instance, const std::string& shard) {
  std::array<std::byte, 1024> few;  // enough for most calls
  std::pmr::monotonic_buffer_resource memory(few.data(), few.size());
  std::pmr::vector<std::string> keys(&memory);
  keys.reserve(tasks_.size());
  std::pmr::vector<millrace_task> raw(&memory);
  raw.reserve(tasks_.size());
  for (const Task* task : tasks_) {
    keys.push_back(IdempotencyKey(shard, *task));
    raw.push_back(RawTask(*task, keys.back()));
  }
  handler.run(instance, reinterpret_cast<millrace_call*>(this), &HostFunctions::kTable, raw.data(),
              raw.size());
}

void PluginCall::EndTask() {
  if (!current_) return;
  const Outcome& outcome = outcomes_[*current_];
  current_.reset();
  context_.EndTask(outcome.kind == OutcomeKind::Done);
}

// A plugin that is older than MILLRACE_ALL_TASKS reports an exception for each task of the call.
bool PluginCall::LooksThrown() const {
  return !told_ && std::all_of(outcomes_.begin(), outcomes_.end(), [](const Outcome& one) {
    return one.error_class == "exception" || one.error_class == "bad_params";
  });
}

// A batch that gave fewer outcomes than it has tasks, or more: which of them is whose nobody can say.
bool PluginCall::Mismatched() const {
  if (tasks_.size() == 1) return false;
  return beyond_ || std::any_of(outcomes_.begin(), outcomes_.end(),
                                [](const Outcome& one) { return one.kind == kUnsaid; });
}

std::vector<Outcome> PluginCall::Run(const millrace_handler& handler, void* instance,
                                     const std::string& shard) {
  std::optional<std::string> thrown;  // an exception may have no message
  try {
    RunHandler(handler, instance, shard);
  } catch (const std::exception& exception) {
    thrown = exception.what();
  } catch (...) {
    thrown = "something that is not a std::exception";
  }
  if (thrown || LooksThrown() || Mismatched()) context_.Throw();
  EndTask();
  for (Outcome& outcome : outcomes_) {
    if (thrown) {
      // It may have stopped anywhere: what it said before does not count.
      outcome = {OutcomeKind::Retry, Storable(*thrown), {}, {}, "exception"};
    } else if (outcome.kind == kUnsaid) {
      outcome = BadOutcome("it gave none for this task");
    }
  }
  return std::move(outcomes_);
}

}  // namespace millrace::engine
