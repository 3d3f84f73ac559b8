// Asks a server for one page: for probes.
#pragma once

#include <string>

#include "framework/base/clock.h"
#include "framework/http/address.h"

namespace millrace::engine {

struct HttpQuestion {
  HttpAddress address;
  std::string path;
  std::string tls_authorities;             // file; empty: plain
  Micros limit = std::chrono::seconds(2);  // for all of it
};

struct HttpReply {
  unsigned status = 0;
  std::string body;
};

// Unavailable where nobody answers in time, what answers is no such server, or it is not whom it should be.
Result<HttpReply> AskHttp(const HttpQuestion& question);

}  // namespace millrace::engine
