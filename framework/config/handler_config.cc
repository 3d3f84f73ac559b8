#include "framework/config/parts.h"

namespace millrace {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr Micros kYear = std::chrono::hours(24 * 365);

bool IsGroupName(const std::string& name) {
  return name.size() <= kMaxHandlerName &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-") == std::string::npos;
}

RetryPolicy ReadRetry(const json& value, const KeyPath& path, Problems& problems) {
  RetryPolicy retry;
  Section section(value, path, problems);
  section.Durations("delays", retry.delays, 0s, kYear);
  section.Integer("max_failures", retry.max_failures, 1, 1'000'000);
  section.Fraction("jitter", retry.jitter, 0.0, 1.0);
  section.Done();
  return retry;
}

SecretSource ReadSecret(const json& value, const KeyPath& path, Problems& problems) {
  SecretSource source;
  Section section(value, path, problems);
  section.Text("file", source.file, 4096);
  section.Text("variable", source.variable, 256);
  section.Done();
  if (value.is_object() && source.file.empty() == source.variable.empty()) {
    problems.Add(path, "a secret comes from one place: write either \"file\" or \"variable\"");
  }
  return source;
}

HandlerConfig ReadHandler(const json& value, const KeyPath& path, Problems& problems) {
  HandlerConfig handler;
  Section section(value, path, problems);
  section.Integer("concurrency", handler.concurrency, 1, 256);
  section.Integer("queue", handler.queue, 1, 10'000);
  section.Duration("timeout", handler.timeout, 1ms, std::chrono::hours(24 * 7));
  if (const json* retry = section.Child("retry"))
    handler.retry = ReadRetry(*retry, section.Path("retry"), problems);
  section.Duration("keep", handler.keep, 0s, 10 * kYear);
  section.Text("group", handler.group, kMaxHandlerName);
  if (!IsGroupName(handler.group)) {
    section.Add("group", "a group's name is made of lower-case letters, digits, '_', '.' and '-'");
  }
  if (const auto choice = section.Choice("on_exception", {"retry", "fail"})) {
    handler.on_exception = *choice == 0 ? OnException::Retry : OnException::Fail;
  }
  section.Text("uses", handler.uses, kMaxHandlerName);
  if (!handler.uses.empty() && !IsHandlerName(handler.uses)) {
    section.Add("uses",
                "this is not a handler name: lower-case letters, digits, '_' and '.', a letter first");
  }
  section.Object("options", handler.options);
  if (const json* secrets = section.Child("secrets")) {
    Section names(*secrets, section.Path("secrets"), problems);
    for (const auto& [name, source] : names.Every().items()) {
      handler.secrets[name] = ReadSecret(source, names.Path(name), problems);
    }
  }
  section.Integer("batch", handler.batch, 1, static_cast<std::uint32_t>(kMaxBatchRows));
  section.Done();
  return handler;
}

}  // namespace

std::map<std::string, HandlerConfig> ReadHandlers(const json& value, Problems& problems) {
  std::map<std::string, HandlerConfig> handlers;
  Section section(value, {"handlers"}, problems);
  for (const auto& [name, handler] : section.Every().items()) {
    if (!IsHandlerName(name)) {
      section.Add(name,
                  "this is not a handler name: lower-case letters, digits, '_' and '.', a letter first, "
                  "at most 64");
    }
    handlers[name] = ReadHandler(handler, section.Path(name), problems);
  }
  return handlers;
}

}  // namespace millrace
