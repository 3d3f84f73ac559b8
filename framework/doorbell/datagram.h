// A ring from a producer to a worker: one datagram, sent without waiting and without an answer.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "framework/base/clock.h"
#include "framework/base/result.h"
#include "framework/store/change_feed.h"

namespace millrace::engine {

struct ShardRing {
  std::string shard;
  Ring ring;
  bool operator==(const ShardRing&) const = default;
};

// `millrace-ring 1 main tasks 3,17-19`, with `*` for any table and for any slice. Pure.
std::string ToText(const ShardRing& ring);
// nullopt for anything else.
std::optional<ShardRing> ReadShardRing(std::string_view text);

// Whether a worker could be rung there.
bool IsRingAddress(const std::string& address);
// Rings the workers whose nodes name these addresses, `host:port`. Never waits for anybody, never fails: a
// ring is a hint, and a worker that misses it polls. A host that is a name is not looked up.
void SendRing(std::span<const std::string> addresses, const ShardRing& ring);

// Where a worker hears them. One thread, but for Interrupt.
class RingSocket {
 public:
  // `address`: an IP address, with a port where it is to be fixed. Invalid for anything else; Unavailable
  // where it is taken.
  static Result<std::unique_ptr<RingSocket>> Open(const std::string& address);
  ~RingSocket();

  // With its port.
  const std::string& address() const { return address_; }
  // What comes next, within `limit`; nullopt: nothing that makes sense.
  std::optional<ShardRing> Wait(Micros limit);
  // Ends a Wait.
  void Interrupt() const;

 private:
  struct Socket;
  RingSocket(std::unique_ptr<Socket> socket, std::string address);

  const std::unique_ptr<Socket> socket_;
  const std::string address_;
};

}  // namespace millrace::engine
