// Write a handler: derive from Handler, override Run, export it with MILLRACE_PLUGIN. handlers/README.md
// shows a whole plugin.
//
//   class Greet final : public millrace::Handler {
//     millrace::Outcome Run(const millrace::Task& task, millrace::Context& context) override {
//       context.Info("hello, " + task.Params().Text("name"));
//       return millrace::Done();
//     }
//   };
//   MILLRACE_PLUGIN("greet", "1.0", millrace::Register<Greet>("greet", "Greets a person by name"))
#pragma once

#include <millrace/context.h>

#include <cstddef>
#include <exception>
#include <memory>
#include <type_traits>

namespace millrace {
inline namespace handler_v1 {

// The secrets that the configuration grants to a handler, by name. Valid during Open.
class Secrets {
 public:
  explicit Secrets(const millrace_open& open) : open_(&open) {}
  std::optional<std::string> Find(std::string_view name) const {
    millrace_text value{};
    if (open_->secret(open_->host, detail::Text(name), &value) != MILLRACE_OK) return std::nullopt;
    return std::string(detail::View(value));
  }
  std::string Get(std::string_view name) const {
    if (auto value = Find(name)) return *std::move(value);
    throw BadInput("the secret '" + std::string(name) +
                   "' is missing; name its file or variable under 'secrets'");
  }

 private:
  const millrace_open* open_;
};

// Opened once per task type, before its first task, and closed after its last. Run is called from several
// threads at once on one object.
class HandlerBase {
 public:
  virtual ~HandlerBase() = default;
  // Throw (BadInput with a sentence for the operator) to refuse the options.
  virtual void Open(const Json& options, const Secrets& secrets) {
    (void)options;
    (void)secrets;
  }
  virtual void Close() {}
};

// Runs one task at a time. What escapes from Run ends the attempt: BadInput fails the task at once; any other
// exception is a failed attempt of the class `exception`, retried or failed as the configuration says. With a
// max_batch above 1 it is handed several tasks, one after another, in one transaction with a savepoint for
// each: the SQL of each commits if that task is done, and is undone otherwise. Where the transaction is lost
// as a whole (a deadlock) its tasks run again, each alone and uncounted.
class Handler : public HandlerBase {
 public:
  virtual Outcome Run(const Task& task, Context& context) = 0;
};

// Runs up to Register's max_batch tasks in one transaction. Returns one outcome per task, in their order.
// Nobody else can tell whose SQL it sent: it sends SQL for the tasks alone that it returns as Done, since
// that commits if any of them is. Where the call fails as a whole (an escaped exception, a failed statement)
// all is rolled back, and the tasks run again in two halves, uncounted and within the one time limit, and in
// the end one by one: so only the task that is to blame fails. Effects outside of SQL may repeat in that.
class BatchHandler : public HandlerBase {
 public:
  virtual std::vector<Outcome> Run(std::span<const Task> tasks, Context& context) = 0;
};

namespace detail {

inline void Settle(millrace_call* call, const millrace_host* host, std::size_t index,
                   const Outcome& outcome) {
  const millrace_outcome raw{sizeof raw,       outcome.kind,       outcome.at_us,
                             outcome.delay_us, Text(outcome.text), Text(outcome.error_class)};
  host->settle(call, index, &raw);
}

// The outcome for the exception that is being handled.
inline Outcome OutcomeOfException() {
  try {
    throw;
  } catch (const BadInput& error) {
    return Fail(error.what()).Class("bad_params");
  } catch (const std::exception& error) {
    return Retry(error.what()).Class("exception");
  } catch (...) {
    return Retry("the handler threw something that is not a std::exception").Class("exception");
  }
}

// A host that is older than this header tells no task's SQL apart.
inline bool TellsApart(const millrace_host* host) { return MILLRACE_HAS(millrace_host, host, begin_task); }

inline void RunOn(Handler& handler, millrace_call* call, const millrace_host* host,
                  std::span<const millrace_task> raw) {
  Context context(host, call);
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (TellsApart(host) && host->begin_task(call, i) != MILLRACE_OK) return;
    try {
      Settle(call, host, i, handler.Run(Task(raw[i]), context));
    } catch (...) {
      Settle(call, host, i, OutcomeOfException());
    }
  }
}

inline void RunOn(BatchHandler& handler, millrace_call* call, const millrace_host* host,
                  std::span<const millrace_task> raw) {
  Context context(host, call);
  if (TellsApart(host)) host->begin_task(call, MILLRACE_ALL_TASKS);
  try {
    std::vector<Task> tasks(raw.begin(), raw.end());
    const std::vector<Outcome> outcomes = handler.Run(tasks, context);
    for (std::size_t i = 0; i < outcomes.size(); ++i) Settle(call, host, i, outcomes[i]);
  } catch (...) {
    const Outcome outcome = OutcomeOfException();
    if (TellsApart(host)) return Settle(call, host, MILLRACE_ALL_TASKS, outcome);
    for (std::size_t i = 0; i < raw.size(); ++i) Settle(call, host, i, outcome);
  }
}

template <class H>
void* OpenHandler(const millrace_open* open) noexcept {
  try {
    auto handler = std::make_unique<H>();
    static_cast<HandlerBase&>(*handler).Open(Json::Parse(View(open->options)), Secrets(*open));
    return handler.release();
  } catch (const std::exception& error) {
    open->refuse(open->host, Text(error.what()));
  } catch (...) {
    open->refuse(open->host, Text("it threw something that is not a std::exception"));
  }
  return nullptr;
}

template <class H>
void RunHandler(void* instance, millrace_call* call, const millrace_host* host, const millrace_task* tasks,
                std::size_t count) noexcept {
  try {
    RunOn(*static_cast<H*>(instance), call, host, std::span(tasks, count));
  } catch (...) {
    // Only for want of memory; a task without an outcome is a failed attempt.
  }
}

template <class H>
void CloseHandler(void* instance) noexcept {
  std::unique_ptr<H> handler(static_cast<H*>(instance));
  try {
    static_cast<HandlerBase&>(*handler).Close();
  } catch (...) {
    // Nobody is left who could do anything about it.
  }
}

template <std::size_t N>
struct Pointers {
  explicit Pointers(const millrace_handler (&handlers)[N]) {
    for (std::size_t i = 0; i < N; ++i) at[i] = &handlers[i];
  }
  const millrace_handler* at[N];
};

}  // namespace detail

// Describes handler class H for MILLRACE_PLUGIN. `name` is [a-z][a-z0-9_.]*; the texts must be literals.
template <class H>
millrace_handler Register(const char* name, const char* summary, std::uint32_t max_batch = 1) {
  static_assert(std::is_base_of_v<HandlerBase, H>,
                "a handler derives from millrace::Handler or BatchHandler");
  return {sizeof(millrace_handler), max_batch, name, summary, &detail::OpenHandler<H>, &detail::RunHandler<H>,
          &detail::CloseHandler<H>};
}

}  // namespace handler_v1
}  // namespace millrace

// Exports the plugin, once per library: its name, its version, and a Register for each handler.
#define MILLRACE_PLUGIN(plugin_name, plugin_version, ...)                                           \
  extern "C" __attribute__((visibility("default"))) const millrace_plugin* millrace_plugin_entry(); \
  extern "C" const millrace_plugin* millrace_plugin_entry() {                                       \
    static const millrace_handler handlers[] = {__VA_ARGS__};                                       \
    static const millrace::detail::Pointers pointers(handlers);                                     \
    static const millrace_plugin plugin = {MILLRACE_PLUGIN_MAGIC,                                   \
                                           MILLRACE_ABI_VERSION,                                    \
                                           sizeof(millrace_plugin),                                 \
                                           plugin_name,                                             \
                                           plugin_version,                                          \
                                           pointers.at,                                             \
                                           sizeof handlers / sizeof handlers[0]};                   \
    return &plugin;                                                                                 \
  }
