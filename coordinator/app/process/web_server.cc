#include "coordinator/app/process/web_server.h"

#include <sys/resource.h>

#include <algorithm>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "framework/base/log.h"
#include "framework/files/paths.h"
#include "framework/store/url.h"

namespace millrace::engine {
namespace {

constexpr const char* kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";

// A quarter of the files that the process may open: the others are for its work, whoever asks.
HttpBounds BoundsHere() {
  constexpr rlim_t kPartOfFiles = 4;
  constexpr rlim_t kFewest = 8;
  HttpBounds bounds;
  rlimit files{};
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return bounds;
  bounds.connections = std::clamp<rlim_t>(files.rlim_cur / kPartOfFiles, kFewest, bounds.connections);
  return bounds;
}

Result<TlsIdentity> ReadIdentity(const HttpFlags& flags) {
  if (flags.tls_cert.empty() || flags.tls_key.empty()) {
    return Fail(ErrorCode::Invalid, "TLS needs both --tls-cert FILE and --tls-key FILE");
  }
  TlsIdentity identity{.certificate_name = flags.tls_cert, .key_name = flags.tls_key};
  auto certificate = ReadFileText(flags.tls_cert);
  if (!certificate) return Fail(ErrorCode::Invalid, "the certificate " + certificate.error().message);
  identity.certificate = std::move(*certificate);
  BOOST_OUTCOME_TRY(key, ReadPasswordFile(flags.tls_key, "key file"));
  identity.key = std::move(key);
  return identity;
}

}  // namespace

std::vector<HttpRoute> ProbeRoutes(const ProcessView& view) {
  const auto metrics = [&view](const HttpRequest&) {
    auto text = view.MetricsText();
    if (!text) return HttpResponse{.status = 503, .body = "it starts or stops, and measures nothing\n"};
    return HttpResponse{.content_type = kPrometheusText, .body = std::move(*text)};
  };
  const auto healthz = [&view](const HttpRequest&) {
    const std::string still = view.Ask(kHealthyPatience).stands_still;
    if (still.empty()) return HttpResponse{.body = "ok\n"};
    return HttpResponse{.status = 503, .body = "the thread " + still + " stands still\n"};
  };
  const auto readyz = [&view](const HttpRequest&) {
    const std::vector<std::string> missing = view.Ask(kHealthyPatience).missing;
    if (missing.empty()) return HttpResponse{.body = "ready\n"};
    return HttpResponse{.status = 503, .body = "not ready: " + Joined(missing, "; ") + "\n"};
  };
  return {{"GET", "/metrics", Role::View, metrics},
          {"GET", "/healthz", std::nullopt, healthz},
          {"GET", "/readyz", std::nullopt, readyz}};
}

Result<std::unique_ptr<WebServer>> WebServer::Make(const HttpFlags& flags, const ProcessView& view) {
  std::optional<Tokens> tokens;
  if (!flags.tokens.empty()) {
    BOOST_OUTCOME_TRY(text, ReadPasswordFile(flags.tokens, "token file"));
    BOOST_OUTCOME_TRY(parsed, Tokens::Parse(text, flags.tokens));
    tokens = std::move(parsed);
  }
  std::optional<TlsIdentity> tls;
  if (!flags.tls_cert.empty() || !flags.tls_key.empty()) {
    BOOST_OUTCOME_TRY(identity, ReadIdentity(flags));
    tls = std::move(identity);
  }
  return std::unique_ptr<WebServer>(new WebServer(view, std::move(tokens), std::move(tls)));
}

// The one before goes first: both may name the same port.
Status WebServer::Listen(const std::string& address) {
  Status served = Serve(address);
  if (served) {
    address_ = address;
  } else if (!address_.empty()) {
    (void)Serve(address_);
  }
  return served;
}

Status WebServer::Serve(const std::string& address) {
  server_.reset();
  if (address.empty()) return {};
  BOOST_OUTCOME_TRY(server, HttpServer::Start({address, ProbeRoutes(view_), tokens_, tls_, BoundsHere()}));
  server_ = std::move(server);
  PrintNote("listening on " + server_->url());
  if (server_->open() && !tls_) {
    LogWarning(
        "tokens and answers pass in clear; give --tls-cert and --tls-key, or keep others off the network",
        {{"url", server_->url()}});
  }
  return {};
}

}  // namespace millrace::engine
