#include "smtp_server.h"

#include <curl/curl.h>
#include <millrace/mail_address.h>

#include <cstring>
#include <ctime>

#include "../curl_transfer.h"

namespace send_mail {
namespace {

// How far it has come with the server.
struct Conversation {
  std::string_view left;  // of the text: what libcurl has not taken yet
  bool login_due;         // a user is named, and no login has succeeded
};

std::size_t Give(char* buffer, std::size_t size, std::size_t count, void* conversation) noexcept {
  std::string_view& left = static_cast<Conversation*>(conversation)->left;
  const std::size_t given = std::min(size * count, left.size());
  std::memcpy(buffer, left.data(), given);
  left.remove_prefix(given);
  return given;
}

// Hears every line of the server's. Where it offers no login, libcurl goes on without one and says nothing.
std::size_t HearLogin(char* line, std::size_t size, std::size_t count, void* conversation) noexcept {
  constexpr std::string_view kLoggedIn = "235";
  if (std::string_view(line, size * count).starts_with(kLoggedIn))
    static_cast<Conversation*>(conversation)->login_due = false;
  return size * count;
}

// The replies that ask for a login or refuse one: the operator's to repair, so that the mail may go out
// later.
bool ConcernsLogin(long status) { return status == 530 || status == 534 || status == 535 || status == 538; }

std::string NoOffer(const std::string& what) {
  return "the server offers no " + what + ": look at 'security' and the port";
}

// Where the server offers too little, libcurl's words do not say what to do about it.
std::string ProblemOf(CURLcode code, const CurlTransfer& transfer) {
  const std::string problem = transfer.Problem(code);
  if (transfer.Status() >= 400) return problem;
  if (code == CURLE_USE_SSL_FAILED) return NoOffer("encryption") + " (" + problem + ")";
  if (code == CURLE_LOGIN_DENIED) return NoOffer("login that is known here") + " (" + problem + ")";
  return problem;
}

// A server's 5xx to the sender, the recipient or the text stands; every other failure may pass. One that
// greets with a 5xx turns everybody away. One that offered the user no login may take from the user what it
// refuses now.
millrace::Outcome Judge(CURLcode code, const CurlTransfer& transfer, const Conversation& conversation) {
  const std::string why = "the mail was not sent: " + ProblemOf(code, transfer);
  if (code == CURLE_ABORTED_BY_CALLBACK)
    return millrace::Retry("stopped before the mail was sent").Class("stopped");
  if (code == CURLE_OPERATION_TIMEDOUT) return millrace::Retry(why).Class("timeout");
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
    return millrace::Retry(why + "; 'ca_file' names the authorities to trust, if they are not the system's")
        .Class("certificate");
  }
  const long status = transfer.Status();
  if (status < 400) return millrace::Retry(why).Class("connection");
  const std::string error_class = "smtp_" + std::to_string(status);
  const bool text_refused = code == CURLE_WEIRD_SERVER_REPLY && conversation.left.empty();
  const bool refused = code == CURLE_SEND_ERROR || text_refused;
  if (refused && conversation.login_due)
    return millrace::Retry(why + "; " + NoOffer("login")).Class(error_class);
  const bool final = status >= 500 && refused && !ConcernsLogin(status);
  return final ? millrace::Fail(why).Class(error_class) : millrace::Retry(why).Class(error_class);
}

}  // namespace

std::string DateNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  // Not strftime's names, which depend on the locale.
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %d %02d:%02d:%02d +0000", kDays[parts.tm_wday], parts.tm_mday,
                kMonths[parts.tm_mon], 1900 + parts.tm_year, parts.tm_hour, parts.tm_min, parts.tm_sec);
  return text;
}

SmtpServer::Security SmtpServer::ReadSecurity(const std::string& text) {
  if (text == "none") return Security::None;
  if (text == "starttls") return Security::StartTls;
  if (text == "tls") return Security::Tls;
  throw millrace::BadInput("'security' must be starttls, tls or none, is '" + text + "'");
}

SmtpServer::SmtpServer(const millrace::Json& options, const millrace::Secrets& secrets) {
  CurlLibrary::Start();
  const std::string server = options.Text("server");
  if (server.empty() || server.find('/') != std::string::npos) {
    throw millrace::BadInput("'server' must be HOST or HOST:PORT");
  }
  security_ = ReadSecurity(options.Text("security", "starttls"));
  url_ = (security_ == Security::Tls ? "smtps://" : "smtp://") + server;
  from_ = options.Text("from");
  if (!millrace::IsMailAddress(from_)) throw millrace::BadInput("'from' must be a plain mail address");
  limit_ = ReadTimeout(options);
  ca_file_ = options.Text("ca_file", "");
  user_ = options.Text("user", "");
  if (!user_.empty()) password_ = secrets.Get("password");
}

millrace::Outcome SmtpServer::Send(const Message& message, millrace::Context& context) const {
  const std::string from = "<" + from_ + ">";
  CurlList recipients;
  Append(recipients, "<" + message.to + ">");
  Conversation conversation{message.text, !user_.empty()};

  CurlTransfer transfer(context);
  transfer.Set(CURLOPT_URL, url_.c_str());
  transfer.Set(CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  transfer.Set(CURLOPT_USE_SSL,
               static_cast<long>(security_ == Security::None ? CURLUSESSL_NONE : CURLUSESSL_ALL));
  transfer.Set(CURLOPT_MAIL_FROM, from.c_str());
  transfer.Set(CURLOPT_MAIL_RCPT, recipients.get());
  transfer.Set(CURLOPT_UPLOAD, 1L);
  transfer.Set(CURLOPT_READFUNCTION, &Give);
  transfer.Set(CURLOPT_READDATA, &conversation);
  transfer.Set(CURLOPT_HEADERFUNCTION, &HearLogin);
  transfer.Set(CURLOPT_HEADERDATA, &conversation);
  if (!ca_file_.empty()) transfer.Set(CURLOPT_CAINFO, ca_file_.c_str());
  if (!user_.empty()) {
    transfer.Set(CURLOPT_USERNAME, user_.c_str());
    transfer.Set(CURLOPT_PASSWORD, password_.c_str());
  }
  // Libcurl says QUIT when it closes the connection, and waits for the reply: here, where it can be ended,
  // and not when the handle goes.
  transfer.Set(CURLOPT_FORBID_REUSE, 1L);
  // By itself it waits two minutes for each reply: too long for that to QUIT, too short for a longer limit.
  transfer.Set(CURLOPT_SERVER_RESPONSE_TIMEOUT,
               static_cast<long>(std::chrono::ceil<std::chrono::seconds>(limit_).count()));
  // The reply to the text is the first one after all of it has been taken, and QUIT's is not told.
  const auto accepted = [&] { return conversation.left.empty() && transfer.Status() / 100 == 2; };
  transfer.EndOnce(accepted);
  const CURLcode code = transfer.Perform(limit_);
  return code == CURLE_OK || accepted() ? millrace::Done("sent to " + message.to)
                                        : Judge(code, transfer, conversation);
}

}  // namespace send_mail
