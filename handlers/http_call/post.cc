#include "post.h"

#include <curl/curl.h>

#include <algorithm>
#include <ctime>

#include "verdict.h"

namespace http_call {
namespace {

constexpr std::size_t kMostBody = 4096;
constexpr const char* kIdempotencyKey = "Idempotency-Key: ";

// Whether a header's line has this name, in whatever letters.
bool IsNamed(const std::string& header, const std::string& name) {
  return header.size() > name.size() && header[name.size()] == ':' &&
         ::curl_strnequal(header.data(), name.data(), name.size()) != 0;
}

bool HasControls(std::string_view text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; });
}

std::size_t OnBody(char* data, std::size_t size, std::size_t count, void* answer) noexcept {
  std::string& body = static_cast<Answer*>(answer)->body;
  body.append(data, std::min(size * count, kMostBody - body.size()));
  return size * count;
}

std::size_t OnHeader(char* data, std::size_t size, std::size_t count, void* answer) noexcept {
  const std::string_view line(data, size * count);
  constexpr std::string_view kName = "retry-after:";
  if (line.size() <= kName.size() || ::curl_strnequal(line.data(), kName.data(), kName.size()) == 0)
    return line.size();
  std::string value(line.substr(kName.size()));
  const std::size_t first = value.find_first_not_of(" \t");
  const std::size_t last = value.find_last_not_of(" \t\r\n");
  static_cast<Answer*>(answer)->retry_after =
      first == std::string::npos ? "" : value.substr(first, last - first + 1);
  return line.size();
}

// Whether the server acted on the request is not known: the idempotency key is what makes a repetition
// safe.
millrace::Outcome Broken(CURLcode code, const CurlTransfer& transfer) {
  if (code == CURLE_ABORTED_BY_CALLBACK) {
    return millrace::Retry("stopped before the server had answered").Class("stopped");
  }
  const std::string why = "no answer from the server: " + transfer.Problem(code);
  if (code == CURLE_OPERATION_TIMEDOUT) return millrace::Retry(why).Class("timeout");
  if (code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE) {
    return millrace::Retry(why + "; 'ca_file' names the authorities to trust, if they are not the system's")
        .Class("certificate");
  }
  return millrace::Retry(why).Class("connection");
}

}  // namespace

Poster::Poster(const millrace::Json& options, const millrace::Secrets& secrets) {
  CurlLibrary::Start();
  limit_ = ReadTimeout(options);
  ca_file_ = options.Text("ca_file", "");
  if (options.Find("headers")) {
    for (const auto& [name, value] : options.At("headers").Members()) AddHeader(name, value.AsText());
  }
  if (const auto token = secrets.Find("bearer_token")) AddHeader("Authorization", "Bearer " + *token);
}

void Poster::CheckUrl(const std::string& url, const std::string& name) {
  if (url.starts_with("http://") || url.starts_with("https://")) return;
  throw millrace::BadInput("'" + name + "' must begin with http:// or https://");
}

millrace::Outcome Poster::Post(const std::string& url, std::string_view body,
                               std::string_view idempotency_key, millrace::Context& context) {
  CurlList headers;
  for (const std::string& header : headers_) Append(headers, header);
  Append(headers, kIdempotencyKey + std::string(idempotency_key));

  Answer answer;
  CurlTransfer transfer(context, connections_);
  transfer.Set(CURLOPT_URL, url.c_str());
  transfer.Set(CURLOPT_PROTOCOLS_STR, "http,https");
  transfer.Set(CURLOPT_HTTPHEADER, headers.get());
  transfer.Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  transfer.Set(CURLOPT_POSTFIELDS, body.data());
  transfer.Set(CURLOPT_WRITEFUNCTION, &OnBody);
  transfer.Set(CURLOPT_WRITEDATA, &answer);
  transfer.Set(CURLOPT_HEADERFUNCTION, &OnHeader);
  transfer.Set(CURLOPT_HEADERDATA, &answer);
  if (!ca_file_.empty()) transfer.Set(CURLOPT_CAINFO, ca_file_.c_str());
  const CURLcode code = transfer.Perform(limit_);
  if (code != CURLE_OK) return Broken(code, transfer);
  answer.status = transfer.Status();
  return Judge(answer, std::time(nullptr));
}

void Poster::AddHeader(const std::string& name, const std::string& value) {
  if (name.empty() || HasControls(name) || name.find(':') != std::string::npos || HasControls(value)) {
    throw millrace::BadInput(
        "'headers' or the secret 'bearer_token' hold characters that no HTTP header may have");
  }
  if (IsNamed(kIdempotencyKey, name)) {
    throw millrace::BadInput("'headers' may not name 'Idempotency-Key': each task has its own");
  }
  // In place of one of that name: a list of libcurl's is sent line by line.
  std::erase_if(headers_, [&](const std::string& header) { return IsNamed(header, name); });
  headers_.push_back(name + ": " + value);
}

}  // namespace http_call
