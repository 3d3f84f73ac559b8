// A shard in MySQL 8.0.16+ or MariaDB 10.6+.
#pragma once

#include <memory>

#include "framework/base/result.h"
#include "framework/store/store.h"
#include "framework/store/url.h"

namespace millrace::engine::mysql {

// Touches no connection: a server that is away shows in Ping and in the sessions. Invalid for a URL of
// another kind. The password file is read at each connect, so that a password can be changed while the
// program runs.
Result<std::unique_ptr<Store>> OpenStore(const StoreUrl& url, const StoreOptions& options);

}  // namespace millrace::engine::mysql
