// Ports for the servers of a test.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::engine {

// Ports on the loopback address that are this process's alone until it ends, whatever tests run beside it: a
// server that is away finds its port free when it comes back. Thread-safe. Dies with a message where there
// are none.
std::vector<std::uint16_t> FreePorts(std::size_t count);

}  // namespace millrace::engine
