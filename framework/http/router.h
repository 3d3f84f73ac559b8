// From a request to its route, or to why there is none for it. Pure but for the routes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/http/message.h"

namespace millrace::engine {

// Immutable.
class Router {
 public:
  struct Rules {
    bool this_machine_alone = true;     // it listens on loopback: a Host that names anything else is refused
    std::optional<Tokens> tokens = {};  // nullopt: whoever reaches it may view, and no more
    std::string own_name = {};          // it was told to listen on, and may be asked by
  };

  Router(std::vector<HttpRoute> routes, Rules rules) : routes_(std::move(routes)), rules_(std::move(rules)) {}

  // 400 for a target that is no path, 421 for a foreign Host, 404, 405 with Allow, 401 without a valid token
  // where the route needs one, 403 where the token's role is too low, 500 for a route that throws; otherwise
  // what the route says.
  HttpResponse Answer(const HttpRequest& request) const;

 private:
  std::optional<HttpResponse> Objection(const HttpRequest& request, const HttpRoute& route) const;

  const std::vector<HttpRoute> routes_;
  const Rules rules_;
};

// A refusal as all of them look: one line of text.
HttpResponse PlainRefusal(unsigned status, const std::string& what);

}  // namespace millrace::engine
