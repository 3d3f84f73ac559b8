// POSTs JSON to a URL: what the handlers that do so share.
#pragma once

#include <millrace/handler.h>

#include <string>
#include <string_view>
#include <vector>

#include "../curl_transfer.h"

namespace http_call {

// Thread-safe after it was made.
class Poster {
 public:
  // `options`: timeout_ms, ca_file, headers; the secret `bearer_token`. BadInput for what no header may have.
  Poster(const millrace::Json& options, const millrace::Secrets& secrets);
  // BadInput for a URL that is not of the web.
  static void CheckUrl(const std::string& url, const std::string& name);

  // The body as it is, with the task's idempotency key in a header. What the answer means: see verdict.h.
  millrace::Outcome Post(const std::string& url, std::string_view body, std::string_view idempotency_key,
                         millrace::Context& context);

 private:
  void AddHeader(const std::string& name, const std::string& value);

  std::string ca_file_;
  std::vector<std::string> headers_ = {"Content-Type: application/json", "Expect:"};
  std::chrono::milliseconds limit_{};
  CurlPool connections_;
};

}  // namespace http_call
