// Where a server listens, and which hosts a request to it may name. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "framework/base/result.h"

namespace millrace::engine {

struct HttpAddress {
  std::string host;  // an address or a name, without brackets; never empty
  std::uint16_t port = 0;
};

// `host:port`, `[::1]:port`, or `:port`, which means 127.0.0.1. Invalid for anything else, with what to
// write.
Result<HttpAddress> ParseHttpAddress(std::string_view text);
// `host:port`, an IPv6 address in brackets.
std::string ToText(const HttpAddress& address);

// Whether a Host header names this machine alone: `localhost` and what ends in `.localhost`, 127.0.0.0/8,
// ::1, and the name that it was told to listen on, each with a port or without. A page of another site that
// has its name point to 127.0.0.1 (DNS rebinding) sends its own name.
bool NamesThisMachine(std::string_view host_header, std::string_view own_name = {});

}  // namespace millrace::engine
