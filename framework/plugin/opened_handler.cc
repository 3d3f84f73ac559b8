#include "framework/plugin/opened_handler.h"
#include "framework/base/escape.h"

#include <exception>

#include "framework/plugin/outcome_reader.h"
#include "framework/plugin/plugin_call.h"

namespace millrace::engine {
namespace {

class OpenedHandler final : public HandlerInstance {
 public:
  OpenedHandler(const millrace_handler& descriptor, void* instance)
      : descriptor_(descriptor), instance_(instance) {}
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

 private:
  const millrace_handler& descriptor_;
  void* instance_;
};

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

}  // namespace millrace::engine
