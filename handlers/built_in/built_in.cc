#include "built_in.h"

#include <millrace/handler.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "../http_call/post.h"
#include "../send_mail/message.h"
#include "../send_mail/smtp_server.h"

namespace built_in {
namespace {

// The alert was taken out of the configuration, or this worker has not heard of it yet.
millrace::Outcome NotConfigured(const std::string& alert) {
  return millrace::Retry("no alert '" + alert +
                         "' with this addressee is in the configuration of this worker")
      .Class("not_configured");
}

// Whoever refuses a message may take it once the configuration, or the server, is mended.
millrace::Outcome TriedAgain(millrace::Outcome outcome) {
  if (outcome.kind == MILLRACE_FAIL) outcome.kind = MILLRACE_RETRY;
  return outcome;
}

// Where to is the configuration's alone to say: a task names the alert, and never a URL.
class Webhook final : public millrace::Handler {
 public:
  void Open(const millrace::Json& options, const millrace::Secrets& secrets) override {
    if (options.Find("urls")) {
      for (const auto& [alert, url] : options.At("urls").Members()) {
        http_call::Poster::CheckUrl(url.AsText(), "alerts." + alert + ".webhook");
        urls_.emplace_back(alert, url.AsText());
      }
    }
    poster_.emplace(options, secrets);
  }

  millrace::Outcome Run(const millrace::Task& task, millrace::Context& context) override {
    const std::string alert = task.Params().Text("alert");
    const auto url =
        std::find_if(urls_.begin(), urls_.end(), [&](const auto& one) { return one.first == alert; });
    if (url == urls_.end()) return NotConfigured(alert);
    return TriedAgain(poster_->Post(url->second, task.ParamsText(), task.IdempotencyKey(), context));
  }

 private:
  std::vector<std::pair<std::string, std::string>> urls_;  // alert, URL
  std::optional<http_call::Poster> poster_;
};

// A task names one of the alert's own addresses, and no other.
class Mail final : public millrace::Handler {
 public:
  void Open(const millrace::Json& options, const millrace::Secrets& secrets) override {
    if (options.Find("to")) {
      for (const auto& [alert, addresses] : options.At("to").Members()) {
        for (const millrace::Json& address : addresses.Items()) to_.emplace_back(alert, address.AsText());
      }
    }
    if (options.Find("server")) server_.emplace(options, secrets);
  }

  millrace::Outcome Run(const millrace::Task& task, millrace::Context& context) override {
    const std::string alert = task.Params().Text("alert");
    const std::string to = task.Params().Text("to");
    if (std::find(to_.begin(), to_.end(), std::pair(alert, to)) == to_.end()) return NotConfigured(alert);
    if (!server_) {
      return millrace::Retry("no mail server is known: set handlers.send_mail.options.server and .from")
          .Class("not_configured");
    }
    const send_mail::Templates templates{server_->from(), "{{to}}", "{{subject}}", "{{body}}"};
    return TriedAgain(server_->Send(
        send_mail::Compose(templates, task.Params(), task.IdempotencyKey(), send_mail::DateNow()), context));
  }

 private:
  std::vector<std::pair<std::string, std::string>> to_;  // alert, address
  std::optional<send_mail::SmtpServer> server_;
};

}  // namespace

const millrace_plugin* Plugin() {
  static const millrace_handler handlers[] = {
      millrace::Register<Mail>("millrace.mail", "Sends a message of an alert by mail"),
      millrace::Register<Webhook>("millrace.webhook", "POSTs a message of an alert to its webhook")};
  static const millrace_handler* const pointers[] = {&handlers[0], &handlers[1]};
  static const millrace_plugin plugin = {MILLRACE_PLUGIN_MAGIC,   MILLRACE_ABI_VERSION,
                                         sizeof(millrace_plugin), "millrace",
                                         MILLRACE_VERSION,        pointers,
                                         std::size(pointers)};
  return &plugin;
}

}  // namespace built_in
