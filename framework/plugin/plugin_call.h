// The host's side of one call of a handler: the C functions of <millrace/plugin.h> over a CallContext.
#pragma once

#include <millrace/plugin.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/plugin/handler_instance.h"
#include "framework/task/task.h"

namespace millrace::engine {

// Turns what a plugin says of a task into an Outcome, whatever it says. Pure.

std::string_view View(const millrace_text& text);
inline millrace_text ToText(std::string_view text) { return {text.data(), text.size()}; }

// A Retry of class `bad_outcome`, for a handler that broke its contract.
Outcome BadOutcome(std::string why);

// Texts are made storable; an unknown kind, an impossible time or a struct too small give
// a BadOutcome.
Outcome ReadOutcome(const millrace_outcome* outcome);

// A task as a plugin gets it; it points into what it is made of.
millrace_task RawTask(const Task& task, std::string_view idempotency_key);

// What a plugin sees as an opaque pointer. One per call of run(); on its thread alone.
class PluginCall {
 public:
  PluginCall(std::span<const Task* const> tasks, CallContext& context);

  // Calls the handler and collects one outcome per task. Never throws.
  std::vector<Outcome> Run(const millrace_handler& handler, void* instance, const std::string& shard);

 private:
  struct HostFunctions;

  // Whose progress or line it is: of the task that was begun, whatever index comes with it.
  std::size_t Meant(std::size_t index) const { return current_.value_or(index); }
  void EndTask();
  bool LooksThrown() const;
  bool Mismatched() const;
  void RunHandler(const millrace_handler& handler, void* instance, const std::string& shard);
  std::int32_t Refuse(std::string why, millrace_text* error);

  std::span<const Task* const> tasks_;
  CallContext& context_;
  std::vector<Outcome> outcomes_;       // of a kind that no plugin can say where it gave none
  std::optional<std::size_t> current_;  // the task that the plugin has begun
  bool told_ = false;                   // it says whose SQL it sends
  bool beyond_ = false;                 // it gave an outcome for a task that the call does not have
  std::string error_;                   // the text behind the last `error`
};

}  // namespace millrace::engine
