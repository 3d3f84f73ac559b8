#include "verdict.h"

#include <curl/curl.h>

#include <charconv>
#include <optional>

namespace http_call {
namespace {

constexpr std::int64_t kLongestWait = 7 * 86'400;
constexpr std::size_t kMostOfBody = 500;

// The statuses that ask for a login or refuse one: a token that has expired is the operator's to renew, and
// what waits is not to be lost by it.
bool ConcernsLogin(long status) { return status == 401 || status == 403 || status == 407; }

bool MayPass(long status) {
  return status == 408 || status == 425 || status == 429 || status >= 500 || ConcernsLogin(status);
}

// Seconds, or a date of HTTP. None where that is over: a task that is due at once, time and again, is through
// with its attempts in a moment.
std::optional<std::int64_t> WaitSeconds(const std::string& retry_after, std::int64_t now) {
  if (retry_after.empty()) return std::nullopt;
  std::int64_t seconds = 0;
  const char* end = retry_after.data() + retry_after.size();
  const auto [read_to, error] = std::from_chars(retry_after.data(), end, seconds);
  if (error != std::errc() || read_to != end) {
    const std::int64_t date = ::curl_getdate(retry_after.c_str(), nullptr);
    if (date < 0) return std::nullopt;
    seconds = date - now;
  }
  if (seconds <= 0) return std::nullopt;
  return std::min(seconds, kLongestWait);
}

std::string WithBody(std::string text, const std::string& body) {
  std::size_t end = std::min(body.size(), kMostOfBody);
  while (end > 0 && end < body.size() && (static_cast<unsigned char>(body[end]) & 0xC0) == 0x80) --end;
  return body.empty() ? text : text + ": " + body.substr(0, end);
}

}  // namespace

millrace::Outcome Judge(const Answer& answer, std::int64_t now) {
  const std::string status = std::to_string(answer.status);
  if (answer.status >= 200 && answer.status < 300) return millrace::Done(WithBody(status, answer.body));
  const std::string why = WithBody("the server answered " + status, answer.body);
  if (!MayPass(answer.status)) return millrace::Fail(why).Class("http_" + status);
  millrace::Outcome retry = millrace::Retry(why).Class("http_" + status);
  const auto wait = WaitSeconds(answer.retry_after, now);
  return wait ? std::move(retry).After(std::chrono::seconds(*wait)) : retry;
}

}  // namespace http_call
