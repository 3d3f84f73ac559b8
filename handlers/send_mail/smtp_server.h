// A mail server that the configuration names: what the handlers that send mail share.
#pragma once

#include <millrace/handler.h>

#include <string>

#include "message.h"

namespace send_mail {

// Thread-safe after it was made.
class SmtpServer {
 public:
  // `options`: server, from, security, user, ca_file, timeout_ms; the secret `password`. BadInput with what
  // is wrong.
  SmtpServer(const millrace::Json& options, const millrace::Secrets& secrets);

  // The address that mail comes from.
  const std::string& from() const { return from_; }
  millrace::Outcome Send(const Message& message, millrace::Context& context) const;

 private:
  enum class Security { None, StartTls, Tls };
  static Security ReadSecurity(const std::string& text);

  std::string from_;
  std::string url_;
  std::string ca_file_;
  std::string user_;
  std::string password_;
  Security security_ = Security::StartTls;
  std::chrono::milliseconds limit_{};
};

// The present time as RFC 5322 writes it.
std::string DateNow();

}  // namespace send_mail
