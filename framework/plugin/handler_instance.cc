#include "framework/plugin/handler_instance.h"

#include <exception>
#include <utility>

#include "framework/base/escape.h"
#include "framework/plugin/abi.h"
#include "framework/plugin/plugin_call.h"
#include "framework/task/retry_ladder.h"

namespace millrace::engine {
namespace {

class OpenedHandler final : public HandlerInstance {
 public:
  OpenedHandler(const millrace_handler& descriptor, void* instance)
      : descriptor_(*ReadStruct(&descriptor)), defaults_(ReadDefaults(descriptor)), instance_(instance) {}
  ~OpenedHandler() override {
    try {
      descriptor_.close(instance_);
    } catch (...) {
      LogError("A handler threw while it was closed", {{"handler", descriptor_.name}});
    }
  }
  OpenedHandler(const OpenedHandler&) = delete;
  OpenedHandler& operator=(const OpenedHandler&) = delete;

  std::uint32_t MaxBatch() const override { return descriptor_.max_batch; }
  std::vector<Outcome> Run(const std::string& shard, std::span<const Task* const> tasks,
                           CallContext& context) override {
    return PluginCall(tasks, context).Run(descriptor_, instance_, shard);
  }
  const CodeDefaults& Defaults() const override { return defaults_; }
  Outcome NextRetry(const std::string& shard, const Task& task, Outcome failed, std::uint32_t failure,
                    Micros ladder_delay) override;

 private:
  const millrace_handler descriptor_;
  const CodeDefaults defaults_;
  void* instance_;
};

Outcome OpenedHandler::NextRetry(const std::string& shard, const Task& task, Outcome failed,
                                 std::uint32_t failure, Micros ladder_delay) {
  const std::string idempotency_key = IdempotencyKey(shard, task);
  const millrace_task raw = RawTask(task, idempotency_key);
  const millrace_failure asked{sizeof asked, failure, ladder_delay.count(), ToText(failed.text),
                               ToText(failed.error_class)};
  millrace_outcome answer{sizeof answer, -1, 0, 0, asked.text, asked.error_class};
  try {
    answer.kind = descriptor_.next_retry(instance_, &raw, &asked, &answer.delay_us);
  } catch (...) {
    LogError("A handler threw when it was asked for its next attempt",
             {{"task", std::string(NameIn(idempotency_key))}});
  }
  const bool decided = answer.kind == MILLRACE_RETRY || answer.kind == MILLRACE_FAIL;
  return decided ? ReadOutcome(&answer) : failed;
}

struct Opening {
  const Secrets& secrets;
  std::string refusal;
};

std::int32_t GiveSecret(void* host, millrace_text name, millrace_text* value) noexcept {
  for (const auto& [known, secret] : static_cast<Opening*>(host)->secrets) {
    if (known == View(name)) {
      *value = ToText(secret);
      return MILLRACE_OK;
    }
  }
  return MILLRACE_ERROR;
}

void TakeRefusal(void* host, millrace_text why) noexcept {
  try {
    static_cast<Opening*>(host)->refusal = Shorten(Escape(View(why).substr(0, kMaxText)));
  } catch (...) {
    // Only for want of memory: the refusal then has no reason.
  }
}

}  // namespace

CodeDefaults ReadDefaults(const millrace_handler& descriptor) {
  CodeDefaults code;
  const auto handler = ReadStruct(&descriptor);
  if (!handler) return code;
  code.next_retry = handler->next_retry != nullptr;
  const auto raw = ReadStruct(handler->defaults);
  if (!raw) return code;
  if (raw->concurrency != 0) code.concurrency = raw->concurrency;
  if (raw->timeout_us != 0) code.timeout = Micros(raw->timeout_us);
  for (std::uint32_t i = 0; i < raw->delay_count; ++i) code.delays.emplace_back(raw->delays_us[i]);
  if (raw->max_failures != 0) code.max_failures = raw->max_failures;
  return code;
}

Result<std::unique_ptr<HandlerInstance>> OpenHandler(const millrace_handler& descriptor,
                                                     const std::string& type, const std::string& options,
                                                     const Secrets& secrets) {
  Opening opening{secrets, {}};
  const millrace_open open{sizeof open, ToText(type), ToText(options), &opening, &GiveSecret, &TakeRefusal};
  void* instance = nullptr;
  try {
    instance = descriptor.open(&open);
  } catch (const std::exception& exception) {
    opening.refusal = Shorten(Escape(exception.what()));
  } catch (...) {
    opening.refusal = "it threw something that is not a std::exception";
  }
  if (instance == nullptr) {
    if (opening.refusal.empty()) opening.refusal = "it gave no reason";
    return Fail(ErrorCode::Invalid, "the handler '" + std::string(descriptor.name) +
                                        "' can't be opened for tasks of type '" + type +
                                        "': " + opening.refusal + " (see handlers." + type +
                                        ".options in the configuration)");
  }
  return std::make_unique<OpenedHandler>(descriptor, instance);
}

Outcome AskNextRetry(HandlerInstance& handler, const HandlerConfig& config, const std::string& shard,
                     const Task& task, Outcome outcome, double unit) {
  if (!handler.Defaults().next_retry || config.given.contains("retry.delays")) return outcome;
  if (outcome.kind != OutcomeKind::Retry || outcome.at || outcome.delay) return outcome;
  const std::uint32_t failure = NextFailure(task);
  if (failure >= config.retry.max_failures || ClassOf(config.retry, outcome.error_class) != nullptr)
    return outcome;
  const Micros ladder_delay = RetryDelay(config.retry, failure, 0.5);
  Outcome decided = handler.NextRetry(shard, task, std::move(outcome), failure, ladder_delay);
  if (decided.delay) decided.delay = Spread(*decided.delay, config.retry.jitter, unit);
  return decided;
}

}  // namespace millrace::engine
