// What a process that works answers over HTTP: /metrics, /healthz, /readyz.
#pragma once

#include <memory>
#include <string>

#include "coordinator/app/process/process_facts.h"
#include "framework/http/server.h"

namespace millrace::engine {

// As given; empty: not given.
struct HttpFlags {
  std::string http;
  std::string tokens;
  std::string tls_cert;
  std::string tls_key;
};

// A thread that is overdue for longer than this is what a probe calls unhealthy.
inline constexpr Micros kHealthyPatience = std::chrono::seconds(30);

std::vector<HttpRoute> ProbeRoutes(const ProcessView& view);

// One thread; `view` outlives it.
class WebServer {
 public:
  // Reads the files that the flags name. Invalid for one that others can read, or that can't be used.
  static Result<std::unique_ptr<WebServer>> Make(const HttpFlags& flags, const ProcessView& view);

  // Answers there from now on, and nowhere else; empty: nowhere. It says where, on standard error. An error
  // leaves it answering where it did; see HttpServer::Start.
  Status Listen(const std::string& address);
  bool Serves() const { return server_ != nullptr; }

 private:
  WebServer(const ProcessView& view, std::optional<Tokens> tokens, std::optional<TlsIdentity> tls)
      : view_(view), tokens_(std::move(tokens)), tls_(std::move(tls)) {}
  Status Serve(const std::string& address);

  const ProcessView& view_;
  const std::optional<Tokens> tokens_;
  const std::optional<TlsIdentity> tls_;
  std::string address_;  // as it was given last and could be listened on
  std::unique_ptr<HttpServer> server_;
};

}  // namespace millrace::engine
