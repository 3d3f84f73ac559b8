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
//
// What a handler may rely on:
//
// Delivery. A task is run at least once, and then ends in one of the pools. What it does through the context
// in its task's own transaction (Execute, Query, Submit) takes effect exactly once: it commits together with
// Done, and is rolled back with everything else. All other effects may repeat: a mail, a request to a
// partner, a file, a log line, what SaveProgress keeps. They repeat after a retry, after the death of the
// worker, and within one attempt where a deadlock or a lost connection, or another task of the same call,
// makes the engine run it again. Task::IdempotencyKey is the same every time: pass it on.
//
// Cancellation. Context::ShouldStop (Stop from other threads) becomes true when the time limit of the call is
// over, when its task is cancelled (of several: all of them), when the worker that was asked to end has
// little of its `stop_timeout` left, when others have declared the worker dead in the task's shard, and when
// its permit (of a `limit.concurrency`) is withdrawn. It never becomes false again. Nothing is interrupted:
// Run is to look at it between its steps, to wait by WaitFor instead of sleeping, and then to return soon.
// What it returns counts still: Done commits, and the task has succeeded (but of a worker that was declared
// dead nothing commits any more, and without its permit a task that has sent SQL goes back uncounted, rolled
// back). A Retry is read by the reason for the stop: over the time limit it is a failed attempt; of a
// cancelled task, its end; of a worker that ends, the task goes back uncounted.
//
// After the time limit. A handler that has not returned a tenth of the limit later (1 to 10 s) is given up.
// The attempt counts as failed, with the class `timeout`; of several tasks in the call none does, and each
// runs again alone. Its SQL is rolled back whatever it returns later, at the latest when it returns, and
// holds its locks until then or until the server closes the connection, a lease after the limit. Its thread
// is lost until Run returns; another takes its place. A worker that has lost more than `max_lost_threads`
// (4) ends, to be started anew. When a worker ends, handlers that still run are left behind: their tasks go
// back uncounted, and the process ends under them.
//
// Threads. One object serves a task type. Open is called once, before all else; Close once, after the last
// Run has returned, each on any thread. Run is called from several threads at once on the one object: up to
// `concurrency`, beside those that are lost; and for a time from up to twice as many, where calls hang in a
// database that is away and others stand in. What Open set up is read only, then, or the handler's to guard.
// Where options or secrets change another object is opened, and the former one is closed once its last Run
// has returned: both run meanwhile. A Context and its Task belong to one Run and its thread, but for Stop,
// ShouldStop, TimeLeft, Deadline and WaitFor, which any thread may ask until Run returns.
#pragma once

#include <millrace/context.h>

#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
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

// What a handler is asked about, see NextRetry.
struct FailedAttempt {
  const Task& task;
  std::uint32_t failure;  // the number among the task's failed attempts: 1 is the first
  Duration ladder_delay;  // after which it would be due again by the ladder
  std::string_view why;
  std::string_view error_class;  // `exception`, or what Class said; may be empty
};

// Opened once per task type, before its first task, and closed after its last. For its threads see above.
class HandlerBase {
 public:
  virtual ~HandlerBase() = default;
  // Throw (BadInput with a sentence for the operator) to refuse the options.
  virtual void Open(const Json& options, const Secrets& secrets) {
    (void)options;
    (void)secrets;
  }
  virtual void Close() {}

  // When a task is due again after an attempt that failed by a Retry without a time of its own, or by an
  // exception: after this delay (spread by the configuration's `retry.jitter`), or, for nullopt, never. It
  // only answers: it may be asked more than once for one attempt, and from several threads, as Run is. It is
  // not asked where the configuration names `retry.delays` or has an entry of `retry.classes` for the class,
  // at the last of `max_failures`, and for failures that are not the handler's word: a time limit that it
  // ignored, a commit that failed, a worker's death.
  virtual std::optional<Duration> NextRetry(const FailedAttempt& failed) { return failed.ladder_delay; }
};

// What a handler brings with it. The configuration goes over it key by key; zero and empty are as built in.
// `millrace config get --effective` shows what is in force, and from where.
struct HandlerDefaults {
  Duration timeout{};              // the time limit of an attempt
  std::vector<Duration> delays{};  // the ladder: after the first, second, … failure; then the last again
  std::uint32_t max_failures{};    // the failed attempt with this number is the last
  std::uint32_t concurrency{};     // tasks at once in one worker
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
// that commits if any of them is. Where the call fails as a whole (an escaped exception, a failed statement,
// fewer outcomes than tasks, or more) all is rolled back, and the tasks run again in two halves, uncounted
// and within the one time limit, and in the end one by one: so only the task that is to blame fails. Effects
// outside of SQL may repeat in that.
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

template <class H>
std::int32_t AskNextRetry(void* instance, const millrace_task* task, const millrace_failure* failure,
                          std::int64_t* delay_us) noexcept {
  try {
    const Task of(*task);
    const auto delay = static_cast<HandlerBase*>(static_cast<H*>(instance))
                           ->NextRetry({of, failure->number, Duration(failure->ladder_delay_us),
                                        View(failure->text), View(failure->error_class)});
    if (!delay) return MILLRACE_FAIL;
    *delay_us = delay->count() < 0 ? 0 : delay->count();
    return MILLRACE_RETRY;
  } catch (...) {
    return -1;  // by the ladder
  }
}

// Whether H leaves NextRetry as it is; an override may be private, and is no NextRetry that can be named.
template <class H>
concept LeavesNextRetry = requires {
  requires std::is_same_v<decltype(&H::NextRetry), decltype(&HandlerBase::NextRetry)>;
};

// A descriptor's defaults live as long as the plugin.
inline const millrace_defaults* Keep(const HandlerDefaults& defaults) {
  struct Kept {
    millrace_defaults raw;
    std::vector<std::int64_t> delays;
  };
  static std::mutex mutex;
  static std::list<Kept>& all = *new std::list<Kept>;
  const std::lock_guard lock(mutex);
  Kept& kept = all.emplace_back();
  for (const Duration delay : defaults.delays) kept.delays.push_back(delay.count());
  kept.raw = {sizeof kept.raw,
              defaults.concurrency,
              defaults.timeout.count(),
              kept.delays.data(),
              static_cast<std::uint32_t>(kept.delays.size()),
              defaults.max_failures};
  return &kept.raw;
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
  return {sizeof(millrace_handler),
          max_batch,
          name,
          summary,
          &detail::OpenHandler<H>,
          &detail::RunHandler<H>,
          &detail::CloseHandler<H>,
          nullptr,
          detail::LeavesNextRetry<H> ? nullptr : &detail::AskNextRetry<H>};
}
// With defaults: Register<Greet>("greet", "Greets", 1, {.timeout = 5s, .max_failures = 3}).
template <class H>
millrace_handler Register(const char* name, const char* summary, std::uint32_t max_batch,
                          const HandlerDefaults& defaults) {
  millrace_handler handler = Register<H>(name, summary, max_batch);
  handler.defaults = detail::Keep(defaults);
  return handler;
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
