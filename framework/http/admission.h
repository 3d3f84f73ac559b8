// Who has to go when a server has all the connections, or all the unsent bytes, that it takes. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "framework/base/clock.h"

namespace millrace::engine {

struct HttpBounds {
  std::size_t connections = 256;
  std::size_t header_bytes = 16 * 1024;  // request line and headers together
  std::size_t body_bytes = 64 * 1024;
  std::size_t unsent_bytes =
      16 * 1024 * 1024;  // of all answers that clients have not taken yet; one may be larger
  Micros request =
      std::chrono::seconds(10);  // from its first byte, or from the connection's beginning, to its last
  Micros answer = std::chrono::seconds(30);  // for the client to take it
  Micros idle = std::chrono::seconds(60);    // between two requests
  Micros slow =
      std::chrono::milliseconds(200);  // who takes longer for an answer makes room where there is none
};

struct HeldConnection {
  enum class Phase {
    Idle,     // between two requests, or about to close
    Reading,  // its request is not whole
    Writing,  // its answer is not taken yet
  };
  std::uint64_t id = 0;
  Phase phase = Phase::Reading;
  BootTime since{};  // it has been in that phase
};

// Whoever has been idle for longest; else whoever has taken longest to send its request: an honest client
// sends it at once, and is read before the next connection is taken. Else whoever has taken longest to read
// its answer, if that is longer than `slow`. nullopt: the newcomer has to go.
std::optional<std::uint64_t> WhoMakesRoom(std::span<const HeldConnection> held, BootTime now, Micros slow);

// Whoever has taken longest to read its answer; nullopt: nobody is being answered.
std::optional<std::uint64_t> SlowestReader(std::span<const HeldConnection> held);

}  // namespace millrace::engine
