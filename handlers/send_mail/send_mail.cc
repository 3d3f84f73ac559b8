// Sends one mail a task, by SMTP. The configuration names the server and the templates; a task gives the
// values.
#include <millrace/handler.h>

#include <optional>

#include "message.h"
#include "smtp_server.h"

namespace send_mail {
namespace {

class SendMail final : public millrace::Handler {
 public:
  void Open(const millrace::Json& options, const millrace::Secrets& secrets) override {
    options.AllowOnly(
        {"server", "from", "security", "user", "timeout_ms", "ca_file", "to", "subject", "body"});
    server_.emplace(options, secrets);
    templates_ = {server_->from(), ReadTemplate(options, "to"), ReadTemplate(options, "subject"),
                  ReadTemplate(options, "body")};
  }

  millrace::Outcome Run(const millrace::Task& task, millrace::Context& context) override {
    return server_->Send(Compose(templates_, task.Params(), task.IdempotencyKey(), DateNow()), context);
  }

 private:
  std::optional<SmtpServer> server_;
  Templates templates_;
};

}  // namespace
}  // namespace send_mail

MILLRACE_PLUGIN("send_mail", "1.0",
                millrace::Register<send_mail::SendMail>("send_mail", "Sends a mail by SMTP"))
