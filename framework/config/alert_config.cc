#include <millrace/mail_address.h>

#include <algorithm>
#include <initializer_list>
#include <type_traits>

#include "framework/config/parts.h"

namespace millrace::engine {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

// Each kind once: its word, and the keys that it has beside those of all alerts.
struct KindKeys {
  const char* word;
  AlertKind kind;
  bool handler = false;
  std::uint32_t more_than = 0;  // the greatest; 0: it has none
  bool longer_than = false;
};
constexpr std::uint32_t kMostTasks = 1'000'000'000;
constexpr KindKeys kKinds[] = {
    {"failed", AlertKind::Failed, true, kMostTasks},
    {"oldest_due", AlertKind::OldestDue, true, 0, true},
    {"unowned", AlertKind::Unowned},
    {"unrunnable", AlertKind::Unrunnable},
    {"refused", AlertKind::Refused, false, kMostEventsCounted},
    {"crashes", AlertKind::Crashes, true, kMostEventsCounted},
    {"worker_lost", AlertKind::WorkerLost, false, kMostEventsCounted},
    {"schedule", AlertKind::Schedule, false, kMostTasks},
    {"breaker", AlertKind::Breaker, true},
};

const KindKeys& KeysOfKind(AlertKind kind) {
  return *std::find_if(std::begin(kKinds), std::end(kKinds),
                       [kind](const KindKeys& keys) { return keys.kind == kind; });
}

const Choices<AlertKind>& KindChoices() {
  static const Choices<AlertKind> choices = [] {
    Choices<AlertKind> all;
    for (const KindKeys& kind : kKinds) all.emplace_back(kind.word, kind.kind);
    return all;
  }();
  return choices;
}

constexpr std::size_t kMostAddresses = 16;
constexpr std::size_t kLongestAddressee = 100;  // it stands in a task's key
constexpr std::size_t kLongestName = 40;        // likewise

// Reads or lists them, as Section and KeyLister do.
template <class Keys, class Alert>
void AlertKeys(Keys& keys, Alert& alert) {
  keys.Choice("kind", alert.kind, KindChoices());
  const KindKeys& own = KeysOfKind(alert.kind);
  if (own.handler) keys.Text("handler", alert.handler, kMaxHandlerName);
  if (own.more_than > 0) keys.Integer("more_than", alert.more_than, 0, own.more_than);
  if (own.longer_than) keys.Duration("longer_than", alert.longer_than, 1s, std::chrono::hours(24 * 365));
  keys.Texts("mail", alert.mail, kLongestAddressee);
  keys.Text("webhook", alert.webhook, 2048);
  keys.Duration("every", alert.every, 1s, std::chrono::hours(24 * 7));
}

bool IsAlertName(const std::string& name) {
  return !name.empty() && name.size() <= kLongestName &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string::npos;
}

bool LooksLikeUrl(const std::string& text) {
  const bool web = text.starts_with("http://") || text.starts_with("https://");
  return web && text.size() > 8 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7F; });
}

void CheckAlert(const AlertConfig& alert, Section& section) {
  if (alert.handler != "*" && !IsHandlerName(alert.handler)) {
    section.Add("handler", "this is neither a task type nor \"*\", which is every one");
  }
  if (alert.mail.size() > kMostAddresses) {
    section.Add("mail", "at most " + std::to_string(kMostAddresses) + " addresses: write to a list of mail");
  }
  for (std::size_t i = 0; i < alert.mail.size(); ++i) {
    if (millrace::IsMailAddress(alert.mail[i])) continue;
    KeyPath path = section.Path("mail");
    path.push_back(std::to_string(i));
    section.problems().Add(path, "this is not a mail address: write it plainly, \"ops@example.com\"");
  }
  for (std::size_t i = 1; i < alert.mail.size(); ++i) {
    if (std::find(alert.mail.begin(), alert.mail.begin() + static_cast<std::ptrdiff_t>(i), alert.mail[i]) ==
        alert.mail.begin() + static_cast<std::ptrdiff_t>(i))
      continue;
    section.Add("mail", "an address stands there twice: leave one of them out");
  }
  if (!alert.webhook.empty() && !LooksLikeUrl(alert.webhook)) {
    section.Add("webhook", "this is not an address of the web: write \"https://host/path\"");
  }
}

AlertConfig ReadAlert(const json& value, const KeyPath& path, Problems& problems) {
  AlertConfig alert;
  Section section(value, path, problems);
  AlertKeys(section, alert);
  CheckAlert(alert, section);
  if (value.is_object() && !value.contains("kind")) {
    std::string words;
    for (const KindKeys& kind : kKinds) words += (words.empty() ? "" : ", ") + std::string(kind.word);
    problems.Add(path, "the alert has no kind; write \"kind\": one of " + words);
  }
  if (value.is_object() && !value.contains("mail") && !value.contains("webhook")) {
    problems.Add(path, "nobody would hear of it: name addresses in \"mail\", or a \"webhook\"");
  }
  section.Done();
  return alert;
}

// What people have configured for tasks of their own serves the alerts, too.
void CopyKeys(const HandlerConfig& handler, std::initializer_list<const char*> keys, json& options) {
  const json theirs = json::parse(handler.options, nullptr, false);
  for (const char* key : keys) {
    if (theirs.is_object() && theirs.contains(key)) options[key] = theirs[key];
  }
}

// How the types that carry alerts are run.
HandlerConfig CarrierOf(json options) {
  HandlerConfig carrier;
  carrier.concurrency = 2;
  carrier.timeout = 45s;
  carrier.retry.delays = {10s, 30s, 1min, 5min, 15min};
  carrier.retry.max_failures = 8;
  carrier.keep = std::chrono::hours(24 * 30);  // as long as its key: what was said can be read back
  carrier.options = options.dump(-1, ' ', false, json::error_handler_t::replace);
  return carrier;
}

}  // namespace

const char* WordOf(AlertKind kind) { return KeysOfKind(kind).word; }

std::map<std::string, AlertConfig> ReadAlerts(const json& value, Problems& problems) {
  std::map<std::string, AlertConfig> alerts;
  Section section(value, {"alerts"}, problems);
  for (const auto& [name, alert] : section.Every().items()) {
    if (!IsAlertName(name)) {
      section.Add(name, "an alert's name is made of lower-case letters, digits, '_' and '-', at most 40");
    }
    alerts[name] = ReadAlert(alert, section.Path(name), problems);
  }
  return alerts;
}

void ListAlert(const AlertConfig& alert, KeyLister& keys) { AlertKeys(keys, alert); }

std::vector<std::string> AlertTroubles(const Config& config) {
  const json server = json::parse(config.HandlerFor(kSendMailType).options, nullptr, false);
  if (server.is_object() && server.contains("server")) return {};
  std::vector<std::string> troubles;
  for (const auto& [name, alert] : config.alerts) {
    if (alert.mail.empty()) continue;
    troubles.push_back("alerts." + name +
                       ".mail: no mail can be sent, since no server for mail is configured; set "
                       "handlers.send_mail.options.server to its HOST:PORT");
  }
  return troubles;
}

void AddAlertCarriers(Config& config) {
  if (config.alerts.empty()) return;
  json urls = json::object();
  json to = json::object();
  for (const auto& [name, alert] : config.alerts) {
    if (!alert.webhook.empty()) urls[name] = alert.webhook;
    if (!alert.mail.empty()) to[name] = alert.mail;
  }
  json web{{"urls", urls}};
  CopyKeys(config.HandlerFor(kHttpCallType), {"ca_file"}, web);
  config.handlers[kWebhookType] = CarrierOf(std::move(web));
  const HandlerConfig& mail = config.HandlerFor(kSendMailType);
  json options{{"to", to}};
  CopyKeys(mail, {"server", "from", "security", "user", "ca_file", "timeout_ms"}, options);
  HandlerConfig carrier = CarrierOf(std::move(options));
  carrier.secrets = mail.secrets;
  config.handlers[kMailType] = std::move(carrier);
}

}  // namespace millrace::engine
