#include "framework/plugin/library.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "framework/base/escape.h"
#include "framework/plugin/abi.h"
#include "framework/plugin/handler_instance.h"
#include "framework/task/task.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kMostHandlers = 1000;
constexpr std::size_t kLongestName = 100;
constexpr std::size_t kMostDelays = 1000;

bool IsShortText(const char* text) {
  if (text == nullptr) return false;
  const std::size_t length = ::strnlen(text, kLongestName + 1);
  return length > 0 && length <= kLongestName;
}

std::string DefaultsProblem(const millrace_handler& handler) {
  const std::string which = "its handler '" + std::string(handler.name) + "' brings defaults ";
  if (handler.defaults == nullptr) return {};
  const auto raw = ReadStruct(handler.defaults);
  if (!raw) return which + "in a struct of " + std::to_string(handler.defaults->struct_size) + " bytes";
  if (raw->delay_count > kMostDelays || (raw->delay_count > 0 && raw->delays_us == nullptr)) {
    return which + "with a ladder of " + std::to_string(raw->delay_count) + " delays; at most " +
           std::to_string(kMostDelays) + " are possible";
  }
  const Status valid = Validate(ReadDefaults(handler));
  return valid ? std::string() : which + "that a configuration may not have: " + valid.error().message;
}

std::string HandlerProblem(const millrace_handler* handler, std::size_t index) {
  const std::string which = "its handler " + std::to_string(index + 1);
  if (handler == nullptr) return which + " is a null pointer";
  if (handler->struct_size < kFirstSize<millrace_handler>) {
    return which + " has a descriptor of " + std::to_string(handler->struct_size) + " bytes where " +
           std::to_string(kFirstSize<millrace_handler>) + " are needed";
  }
  if (handler->name == nullptr) return which + " has no name";
  const std::string name(handler->name, ::strnlen(handler->name, kMaxHandlerName + 1));
  if (!IsHandlerName(name)) {
    return which + " has the bad name '" + Escape(name) +
           "'; names are [a-z][a-z0-9_.]*, at most 64 characters";
  }
  if (handler->open == nullptr || handler->run == nullptr || handler->close == nullptr) {
    return "its handler '" + name + "' lacks one of the functions open, run and close";
  }
  if (handler->max_batch < 1 || handler->max_batch > kMaxBatchRows) {
    return "its handler '" + name + "' takes batches of " + std::to_string(handler->max_batch) +
           " tasks; 1 to 999 are possible";
  }
  return DefaultsProblem(*ReadStruct(handler));
}

// The symbol that a message of dlopen names, as people write it in C++.
std::string Demangle(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? text.get() : symbol;
}

std::string OpenProblem(const std::string& message, const std::string& copy) {
  std::string text = message;
  if (text.starts_with(copy + ": ")) text.erase(0, copy.size() + 2);
  constexpr std::string_view kUndefined = "undefined symbol: ";
  if (text.starts_with(kUndefined)) {
    const std::size_t end = text.find_first_of(" ,\t(", kUndefined.size());
    const std::string symbol =
        text.substr(kUndefined.size(), end == std::string::npos ? end : end - kUndefined.size());
    return "needs the symbol '" + Demangle(symbol) +
           "', which nothing provides; link the plugin with the library that has it (target_link_libraries), "
           "or "
           "rebuild it against the version that is installed";
  }
  if (text.find("cannot open shared object file") != std::string::npos) {
    return "needs a library that is not here: " + text + "; install it, or link it statically";
  }
  if (text.find("version `") != std::string::npos) {
    return "was built on a newer system: " + text + "; rebuild it on this one";
  }
  return "can't be loaded: " + text;
}

Result<void*> OpenCopy(const std::string& copy, const std::string& file) {
  try {
    ::dlerror();
    if (void* handle = ::dlopen(copy.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) return handle;
    const char* message = ::dlerror();
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' " +
                                        OpenProblem(message == nullptr ? "no reason given" : message, copy));
  } catch (...) {
    return Fail(ErrorCode::Invalid, "the plugin '" + file +
                                        "' threw an exception while it was loaded, from one of "
                                        "its global variables; make them lazy");
  }
}

}  // namespace

std::string DescriptorProblem(const millrace_plugin* plugin) {
  if (plugin == nullptr) return std::string(MILLRACE_PLUGIN_ENTRY) + " returned a null pointer";
  if (plugin->magic != MILLRACE_PLUGIN_MAGIC) {
    return "is not a plugin of millrace (its descriptor has a wrong magic number); rebuild it against "
           "<millrace/plugin.h>";
  }
  if (plugin->abi_version != MILLRACE_ABI_VERSION) {
    return "is built for ABI version " + std::to_string(plugin->abi_version) +
           ", and this program wants version " + std::to_string(MILLRACE_ABI_VERSION) +
           "; rebuild it against the <millrace/plugin.h> of this program";
  }
  if (plugin->struct_size < kFirstSize<millrace_plugin>) {
    return "has a descriptor of " + std::to_string(plugin->struct_size) + " bytes where " +
           std::to_string(kFirstSize<millrace_plugin>) +
           " are needed; rebuild it against the <millrace/plugin.h> of this "
           "program";
  }
  if (!IsShortText(plugin->name) || !IsShortText(plugin->version))
    return "gives no name and version (1 to 100 characters)";
  if (plugin->handlers == nullptr || plugin->handler_count == 0) return "has no handlers";
  if (plugin->handler_count > kMostHandlers)
    return "claims to have more than 1000 handlers; its descriptor is damaged";
  for (std::size_t i = 0; i < plugin->handler_count; ++i) {
    if (std::string problem = HandlerProblem(plugin->handlers[i], i); !problem.empty()) return problem;
  }
  return {};
}

Result<const millrace_plugin*> LoadLibrary(const std::string& copy, const std::string& file) {
  BOOST_OUTCOME_TRY(handle, OpenCopy(copy, file));
  void* symbol = ::dlsym(handle, MILLRACE_PLUGIN_ENTRY);
  if (symbol == nullptr) {
    return Fail(ErrorCode::Invalid, "the plugin '" + file +
                                        "' exports no function " MILLRACE_PLUGIN_ENTRY
                                        "; add MILLRACE_PLUGIN(…) to it, or take it out of the folder");
  }
  const millrace_plugin* plugin = nullptr;
  try {
    plugin = reinterpret_cast<millrace_plugin_entry_fn>(symbol)();
  } catch (...) {
    return Fail(ErrorCode::Invalid,
                "the plugin '" + file + "' threw an exception from " MILLRACE_PLUGIN_ENTRY);
  }
  if (const std::string problem = DescriptorProblem(plugin); !problem.empty()) {
    return Fail(ErrorCode::Invalid, "the plugin '" + file + "' " + problem);
  }
  return plugin;
}

}  // namespace millrace::engine
