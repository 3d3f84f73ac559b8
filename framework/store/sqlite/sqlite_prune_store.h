// Pruning of an SQLite shard. One thread at a time.
#pragma once

#include "framework/store/prune_store.h"
#include "framework/store/sqlite/connection.h"

namespace millrace::engine {

class SqlitePruneStore final : public PruneStore {
 public:
  explicit SqlitePruneStore(SqliteFile& file) : db_(file) {}

  Result<PruneStep> PruneEnded(const KeepRule& rule, const std::string& after, std::size_t limit) override;
  Result<PruneStep> PruneKeys(const std::string& after, std::size_t limit) override;
  Result<std::size_t> PruneIncarnations(Micros age, std::size_t limit) override;

 private:
  SqliteConnection db_;
};

}  // namespace millrace::engine
