#include "framework/base/time_text.h"
#include "framework/config/parts.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr Micros kYear = std::chrono::hours(24 * 365);
constexpr Micros kShortestRound = 1s;

bool IsGroupName(const std::string& name) {
  return name.size() <= kMaxHandlerName &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.-") == std::string::npos;
}

// Each of these reads or lists keys, as Section and KeyLister do.

template <class Keys, class Retry>
void RetryKeys(Keys& keys, Retry& retry) {
  keys.Durations("delays", retry.delays, 0s, kYear);
  keys.Integer("max_failures", retry.max_failures, 1, 1'000'000);
  keys.Fraction("jitter", retry.jitter, 0.0, 1.0);
  RetryClassKeys(keys, retry.classes, kYear);
}

template <class Keys, class Source>
void SecretKeys(Keys& keys, Source& source) {
  keys.Text("file", source.file, 4096);
  keys.Text("variable", source.variable, 256);
}

template <class Keys, class Scan>
void ScanKeys(Keys& keys, Scan& scan) {
  keys.Duration("every", scan.every, kShortestRound, kYear);
  keys.Duration("after", scan.after, kShortestRound, kYear);
  keys.Integer("max_rows", scan.max_rows, 1, kMostScanRows);
  keys.Choice("scope", scan.scope, {{"created", ScanScope::Created}, {"key", ScanScope::Key}});
}

template <class Keys, class Handler>
void HandlerKeys(Keys& keys, Handler& handler) {
  keys.Integer("concurrency", handler.concurrency, 1, 256);
  keys.Integer("queue", handler.queue, 1, 10'000);
  keys.OptionalPart("scan", handler.scan, [](auto& part, auto& scan) { ScanKeys(part, scan); });
  keys.Duration("timeout", handler.timeout, 1ms, std::chrono::hours(24 * 7));
  keys.Part("retry", [&](auto& part) { RetryKeys(part, handler.retry); });
  keys.Duration("expires_in", handler.retry.expires_in, 0s, 10 * kYear);
  keys.Duration("keep", handler.keep, 0s, 10 * kYear);
  keys.Text("export", handler.export_to, 4096);
  keys.Duration("held_for", handler.held_for, 0s, 10 * kYear);
  keys.Text("group", handler.group, kMaxHandlerName);
  keys.Choice("on_exception", handler.on_exception,
              {{"retry", OnException::Retry}, {"fail", OnException::Fail}, {"hold", OnException::Hold}});
  keys.Text("uses", handler.uses, kMaxHandlerName);
  keys.Object("options", handler.options);
  keys.Named("secrets", handler.secrets, [](auto& part, auto& source) { SecretKeys(part, source); });
  keys.Integer("batch", handler.batch, 1, static_cast<std::uint32_t>(kMaxBatchRows));
}

void CheckHandler(const HandlerConfig& handler, Section& section) {
  if (!IsGroupName(handler.group)) {
    section.Add("group", "a group's name is made of lower-case letters, digits, '_', '.' and '-'");
  }
  if (!handler.export_to.empty() && !handler.export_to.starts_with('/')) {
    section.Add("export",
                "write the whole path of a folder, from / on: each process has a working folder of its own");
  }
  if (!handler.uses.empty() && !IsHandlerName(handler.uses)) {
    section.Add("uses",
                "this is not a handler name: lower-case letters, digits, '_' and '.', a letter first");
  }
  for (const auto& [name, source] : handler.secrets) {
    if (source.file.empty() != source.variable.empty()) continue;
    KeyPath path = section.Path("secrets");
    path.push_back(name);
    section.problems().Add(path, "a secret comes from one place: write either \"file\" or \"variable\"");
  }
}

void CheckScan(const json& scan, Section& section) {
  const bool every = scan.contains("every");
  if (!scan.is_object() || every != scan.contains("after")) return;
  section.Add("scan", every ? "it has \"every\" and \"after\": leave one of them"
                            : "no round ever begins: write \"every\": \"5m\" or \"after\": \"5m\", or leave "
                              "\"scan\" out, for a scan without a pause");
}

// Those of its parts by their path.
std::set<std::string> KeysOf(const json& handler) {
  std::set<std::string> keys;
  for (const auto& [key, value] : handler.items()) {
    keys.insert(key);
    if (!value.is_object()) continue;
    for (const auto& [name, part] : value.items()) keys.insert(key + "." + name);
  }
  return keys;
}

// Rounds claim every due task once: there is no part of them to leave for later.
void CheckBandsBesideScan(const HandlerConfig& handler, Section& section) {
  if (handler.scan && !handler.bands.empty())
    section.Add("bands", "a handler with \"scan\" has no bands: leave out \"scan\" or \"bands\"");
}

HandlerConfig ReadHandler(const json& value, const KeyPath& path, Problems& problems, UnknownZones zones) {
  HandlerConfig handler;
  Section section(value, path, problems);
  HandlerKeys(section, handler);
  PolicyKeys(section, handler, zones);
  CheckHandler(handler, section);
  if (const json* scan = section.Child("scan")) CheckScan(*scan, section);
  CheckBandsBesideScan(handler, section);
  section.Done();
  handler.given = KeysOf(value);
  return handler;
}

}  // namespace

std::map<std::string, HandlerConfig> ReadHandlers(const json& value, Problems& problems, UnknownZones zones) {
  std::map<std::string, HandlerConfig> handlers;
  Section section(value, {"handlers"}, problems);
  for (const auto& [name, handler] : section.Every().items()) {
    if (!IsHandlerName(name)) {
      section.Add(name,
                  "this is not a handler name: lower-case letters, digits, '_' and '.', a letter first, "
                  "at most 64");
    } else if (IsBuiltIn(name)) {
      section.Add(name, "task types that begin with millrace. are the program's own: choose another name");
    }
    handlers[name] = ReadHandler(handler, section.Path(name), problems, zones);
  }
  return handlers;
}

void ListHandler(const HandlerConfig& handler, KeyLister& keys) {
  HandlerKeys(keys, handler);
  PolicyKeys(keys, handler);
}

HandlerConfig Over(const CodeDefaults& code, HandlerConfig config) {
  const auto takes = [&](const char* key, bool brought) { return brought && !config.given.contains(key); };
  if (takes("concurrency", code.concurrency.has_value())) config.concurrency = *code.concurrency;
  if (takes("timeout", code.timeout.has_value())) config.timeout = *code.timeout;
  if (takes("retry.delays", !code.delays.empty())) config.retry.delays = code.delays;
  if (takes("retry.max_failures", code.max_failures.has_value())) {
    config.retry.max_failures = *code.max_failures;
  }
  return config;
}

std::string DefaultsText(const CodeDefaults& code) {
  nlohmann::ordered_json text = nlohmann::ordered_json::object();
  if (code.concurrency) text["concurrency"] = *code.concurrency;
  if (code.timeout) text["timeout"] = FormatDuration(*code.timeout);
  for (const Micros delay : code.delays) text["retry"]["delays"].push_back(FormatDuration(delay));
  if (code.max_failures) text["retry"]["max_failures"] = *code.max_failures;
  return text.dump();
}

Status Validate(const CodeDefaults& code) {
  const auto config = ParseConfig("{\"handlers\":{\"defaults\":" + DefaultsText(code) + "}}", "its code");
  return config ? Status() : Status(Fail(config.error()));
}

}  // namespace millrace::engine
