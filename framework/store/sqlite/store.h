// A shard in one SQLite file: the embedded default.
#pragma once

#include <memory>

#include "framework/store/store.h"
#include "framework/store/url.h"

namespace millrace::engine::sqlite {

// Opens nothing yet; the file is made by SchemaStore::Apply. Invalid where the URL is of another kind. The
// clock is a test's, which must outlive the store; nullptr: the wall clock.
Result<std::unique_ptr<Store>> OpenStore(const StoreUrl& url, const StoreOptions& options,
                                         const Clock* clock = nullptr);

}  // namespace millrace::engine::sqlite
