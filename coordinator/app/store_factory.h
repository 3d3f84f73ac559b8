// The one place that names the store adapters.
#pragma once

#include <memory>
#include <string>

#include "framework/base/result.h"
#include "framework/config/config.h"
#include "framework/store/store.h"
#include "framework/store/url.h"

namespace millrace::engine {

// A store by its URL; touches no connection. Invalid for a URL of an unknown kind.
Result<std::unique_ptr<Store>> MakeStore(const ShardConfig& shard, Micros lease);

}  // namespace millrace::engine
