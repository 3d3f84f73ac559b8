// What a shard's database says of itself, for `millrace doctor`: settings, rights, tables, samples. Reads
// alone, each of them bounded; what the account may not look at is named as unknown and the rest is there all
// the same.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/store/schema_store.h"

namespace millrace::engine {

enum class Flavour { Sqlite, Mariadb, Mysql };

struct TableFacts {
  std::string name;
  std::uint64_t bytes = 0;
  std::uint64_t free_bytes = 0;  // allocated, and holds nothing
};

// A pool beside what the settles have counted of it; both are of one moment.
struct PoolSample {
  std::string pool;           // the table
  std::uint64_t rows = 0;     // at most kPoolSample + 1
  std::int64_t counted = 0;   // of the finished pool: all that ever entered it
  bool exact = false;         // whether both have to be equal: the failed pool, which nobody prunes
  std::uint64_t suspect = 0;  // of the failed pool's rows, those of tasks whose runs killed workers
};
inline constexpr std::uint64_t kPoolSample = 10'000;

// A right that a worker needs and this account has not.
struct MissingRight {
  std::string right;  // SELECT, INSERT, UPDATE, DELETE
  std::string table;
  bool operator==(const MissingRight&) const = default;
};

// What was not looked at, and why.
struct UnknownFact {
  std::string what;
  std::string why;
};

struct StoreFacts {
  Flavour flavour = Flavour::Sqlite;
  std::string version = {};                          // 10.11.14-MariaDB
  std::map<std::string, std::string> settings = {};  // the server's own, by their names in lower case
  std::map<std::string, std::string> counters = {};  // its status, likewise
  std::vector<MissingRight> missing_rights = {};
  std::vector<SchemaFinding> schema = {};
  std::vector<TableFacts> tables = {};
  std::vector<PoolSample> pools = {};
  std::optional<Micros> oldest_transaction = {};
  std::optional<std::uint64_t> history = {};  // row versions that wait to be purged
  std::string integrity = {};                 // of a file: what its own check found; empty: nothing
  // What a check with scratch tables that was killed has left behind: how many tables and views, by what
  // their names begin with.
  std::map<std::string, std::size_t> leftovers = {};
  std::vector<UnknownFact> unknown = {};
};

struct DiagnosisOptions {
  // Tables of its own are made, filled, explained and dropped again: all that a statement's plan and the
  // schema's exact form need. Without it nothing is written.
  bool scratch = false;
};

class StoreDiagnosis {
 public:
  virtual ~StoreDiagnosis() = default;

  // Errors are those of the first connection; what fails afterwards is unknown.
  virtual Result<StoreFacts> Examine(const DiagnosisOptions& options) = 0;
  // The database's clock. For SQLite the process's own.
  virtual Result<WallTime> Now() = 0;
};

}  // namespace millrace::engine
