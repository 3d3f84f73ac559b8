// A request and its answer, in the words of whoever gives the routes: no client or server library in sight.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/http/tokens.h"

namespace millrace::engine {

struct HttpRequest {
  std::string method;
  std::string path;   // as it was sent, up to the question mark
  std::string query;  // behind it
  std::optional<std::string> host;
  std::string authorization;
  std::string body;
};

struct HttpResponse {
  unsigned status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};
};

struct HttpRoute {
  std::string method;  // GET also answers HEAD
  std::string path;
  std::optional<Role> needs;  // nullopt: anybody may ask
  // Called by the server's one thread, so it answers from memory and waits for nobody.
  std::function<HttpResponse(const HttpRequest&)> answer;
};

}  // namespace millrace::engine
