// The message that a task asks for. Pure.
#pragma once

#include <millrace/handler.h>

#include <string>

namespace send_mail {

struct Templates {
  std::string from;
  std::string to;
  std::string subject;
  std::string body;
};

struct Message {
  std::string to;
  std::string text;  // headers and body, lines ended by CR LF
};

// The option of this name, a template; `{{NAME}}` where it is missing. BadInput that names the option where a
// `{{` of it is not closed.
std::string ReadTemplate(const millrace::Json& options, const std::string& name);

// `{{name}}` replaced by that parameter: a text, a number, true or false. BadInput if it is missing or of
// another kind, or where a `{{` is not closed.
std::string Fill(std::string_view text, const millrace::Json& params);

// BadInput where the address is none. No parameter can add a header or a recipient: line ends in the subject
// become spaces, and it is encoded where it is not ASCII; those in the body become CR LF. The Message-ID is
// made of the idempotency key, so that a repetition can be recognised. `date` is that of RFC 5322.
Message Compose(const Templates& templates, const millrace::Json& params, std::string_view idempotency_key,
                const std::string& date);

}  // namespace send_mail
