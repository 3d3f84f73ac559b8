// What the calls of a lane go by: the configuration in force and the handler opened with it.
#pragma once

#include <algorithm>
#include <memory>

#include "framework/config/config.h"
#include "framework/plugin/handler_instance.h"

namespace millrace::engine {

// Immutable once it is shared: a call keeps the one it began with, and with it the handler open.
struct LaneSetup {
  HandlerConfig config;  // over what the handler brings
  std::shared_ptr<HandlerInstance> handler;
  std::uint32_t threads = 0;  // of the lane

  // Tasks that one call may take.
  std::size_t MostInCall() const {
    const std::size_t most = std::max<std::size_t>(handler->MaxBatch(), 1);
    return config.batch == 0 ? most : std::min<std::size_t>(most, config.batch);
  }
};
using LaneSetupPtr = std::shared_ptr<const LaneSetup>;

}  // namespace millrace::engine
