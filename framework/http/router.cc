#include "framework/http/router.h"

#include <exception>

#include "framework/base/log.h"
#include "framework/http/address.h"

namespace millrace::engine {
namespace {

constexpr std::string_view kBearer = "Bearer ";

bool Serves(const HttpRoute& route, const std::string& method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

}  // namespace

HttpResponse PlainRefusal(unsigned status, const std::string& what) {
  HttpResponse response;
  response.status = status;
  response.body = what + "\n";
  return response;
}

HttpResponse Router::Answer(const HttpRequest& request) const {
  if (!request.path.starts_with('/')) return PlainRefusal(400, "a path is asked for, such as /healthz");
  if (rules_.this_machine_alone && request.host && !NamesThisMachine(*request.host, rules_.own_name)) {
    return PlainRefusal(421, "this server answers for this machine alone, not for another host's name");
  }
  std::string allowed;
  for (const HttpRoute& route : routes_) {
    if (route.path != request.path) continue;
    if (Serves(route, request.method)) {
      if (auto objection = Objection(request, route)) return *std::move(objection);
      try {
        return route.answer(request);
      } catch (const std::exception& defect) {
        LogError("a page failed", {{"path", request.path}, {"error", defect.what()}});
        return PlainRefusal(500, "this page failed; the log says why");
      }
    }
    allowed += (allowed.empty() ? "" : ", ") + route.method + (route.method == "GET" ? ", HEAD" : "");
  }
  if (allowed.empty()) return PlainRefusal(404, "there is nothing here");
  HttpResponse wrong_method = PlainRefusal(405, "use " + allowed);
  wrong_method.headers.emplace_back("Allow", allowed);
  return wrong_method;
}

std::optional<HttpResponse> Router::Objection(const HttpRequest& request, const HttpRoute& route) const {
  if (!route.needs) return std::nullopt;
  std::optional<Role> role = Role::View;
  if (rules_.tokens) {
    const bool bears = request.authorization.starts_with(kBearer);
    role = bears ? rules_.tokens->RoleOf(std::string_view(request.authorization).substr(kBearer.size()))
                 : std::nullopt;
  }
  if (!role) {
    HttpResponse unknown = PlainRefusal(401, "a token is needed: Authorization: Bearer TOKEN");
    unknown.headers.emplace_back("WWW-Authenticate", "Bearer");
    return unknown;
  }
  if (*role < *route.needs) return PlainRefusal(403, "this token's role does not allow it");
  return std::nullopt;
}

}  // namespace millrace::engine
