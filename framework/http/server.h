// The server of a process: one thread, bounded in all that a client can make it hold.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/http/admission.h"
#include "framework/http/message.h"

namespace millrace::engine {

// What a server shows of itself, as PEM texts; the names are for messages.
struct TlsIdentity {
  std::string certificate;  // with the chain up to its authority
  std::string certificate_name;
  std::string key;
  std::string key_name;
};

struct HttpServerOptions {
  std::string address;  // see ParseHttpAddress; port 0: any that is free
  std::vector<HttpRoute> routes;
  std::optional<Tokens> tokens = {};
  std::optional<TlsIdentity> tls = {};
  HttpBounds bounds = {};
};

// Serves from Start until it goes. Thread-safe.
class HttpServer {
 public:
  // Invalid for an address that is none, or that is not loopback while there are no tokens; Conflict where
  // another process listens there; Unavailable where that may pass: this machine does not have the address,
  // no name server says it, or the system gives no thread.
  static Result<std::unique_ptr<HttpServer>> Start(HttpServerOptions options);
  ~HttpServer();  // ends all connections at once

  // `http://127.0.0.1:9470`, with the port that it has.
  const std::string& url() const;
  // It can be reached from other machines.
  bool open() const;

 private:
  class Body;
  explicit HttpServer(std::unique_ptr<Body> body);

  const std::unique_ptr<Body> body_;
};

}  // namespace millrace::engine
