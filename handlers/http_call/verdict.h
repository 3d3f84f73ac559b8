// What the answer of a server means for the task. Pure.
#pragma once

#include <millrace/handler.h>

#include <string>

namespace http_call {

struct Answer {
  long status = 0;
  std::string body;         // its beginning
  std::string retry_after;  // the header's value; empty: none
};

// 2xx is done, with the beginning of the body as the result; 401, 403 and 407 (a login that
// was refused), 408, 425, 429 and 5xx are retry, where Retry-After names a later time, at that time; every
// other status is fail: the same request would get the same answer. `now` is Unix time.
millrace::Outcome Judge(const Answer& answer, std::int64_t now);

}  // namespace http_call
