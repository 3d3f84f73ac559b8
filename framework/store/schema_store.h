// The schema of a shard: printed, applied, upgraded, checked.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/task/task.h"

namespace millrace::engine {

// What each version brought stands in README.md.
inline constexpr std::uint32_t kSchemaVersion = 4;
// The oldest programs that may work on the tables of this one.
inline constexpr std::uint32_t kReadableBy = 3;

struct SchemaSpec {
  std::uint32_t tables = 1;   // 1: `tasks`; more: `tasks_000`, `tasks_001`, … (at most 1000)
  std::uint32_t slices = 64;  // load-balance numbers a table, at most kMaxSlices
};
std::vector<TableName> TableNames(const SchemaSpec& spec);

struct TableInfo {
  TableName table;
  std::uint32_t slices = 0;
  // Numbers of `slices` and more that rows still stand in: after a shrink, or by a producer's own choice.
  // Sorted. A plan has to cover them too until RenumberStep has emptied them.
  std::vector<std::uint32_t> beyond = {};
  auto operator<=>(const TableInfo&) const = default;

  // Whether a plan has a slice of this number.
  bool Has(std::uint32_t number) const {
    return number < slices || std::binary_search(beyond.begin(), beyond.end(), number);
  }
};
inline std::vector<TableName> NamesOf(const std::vector<TableInfo>& tables) {
  std::vector<TableName> names;
  for (const TableInfo& info : tables) names.push_back(info.table);
  return names;
}

struct SchemaFinding {
  std::string what;  // the table, column, index or statement
  std::string problem;
  std::string remedy;
};

// Invalid for a number of slices that no table may have.
Status CheckSlices(std::uint32_t slices);

// What millrace_schema says of a shard as a whole.
struct SchemaState {
  std::uint32_t version = 0;
  std::uint32_t readable_by = 0;  // 0: those of its own version alone
  bool half_way = false;          // an upgrade was cut short: some tables are of an older version
};
// Conflict, with what to type, where this program may not work on such a schema at `where`.
Status CheckVersion(const SchemaState& state, const std::string& where);

// How an upgrade stands.
struct UpgradeStep {
  TableName table = kDefaultTable;
  std::uint64_t copied = 0;
  std::uint64_t rows = 0;  // about so many there are
};
// What an upgrade needs of its caller.
struct UpgradeCalls {
  // Waits so long: between two looks at the beats of workers, and before a table that others have open is
  // tried again.
  std::function<void(Micros)> pause;
  std::function<void(const UpgradeStep&)> step;  // before the rows of a table, and after each part of them
};

class SchemaStore {
 public:
  virtual ~SchemaStore() = default;

  // The DDL as text that the database's own client can run. Touches no connection.
  virtual std::string Print(const SchemaSpec& spec) const = 0;
  // Makes what is missing; existing tables stay as they are. Conflict if none of them has that number of
  // slices.
  virtual Status Apply(const SchemaSpec& spec) = 0;
  // Brings an older schema to kSchemaVersion; returns the version it was. Conflict if it is a newer one, if
  // somebody has a table open for too long, or if something of somebody else's would be lost; NotFound if the
  // schema was never applied. Goes on where an earlier run was cut short. Where it is older than kReadableBy:
  // Conflict if a worker of that version still beats. Where no worker is alive by the tables' word it does
  // not pause for that.
  virtual Result<std::uint32_t> Upgrade(const UpgradeCalls& calls) = 0;
  // The task tables of this shard, by name; NotFound with what to type if the schema was never applied;
  // Conflict with what to type if it is of a version that this program can't work with. `beyond` is empty.
  virtual Result<std::vector<TableInfo>> Tables() = 0;
  // Fills `beyond`, for whoever plans, from the end of the due index: the rows within the slices cost
  // nothing, but every table is opened.
  virtual Status ReadBeyond(std::vector<TableInfo>& tables) = 0;
  // What tells this database from every other in which the schema was applied, its replicas and copies apart:
  // when that was, as text. NotFound if it never was.
  virtual Result<std::string> Identity() = 0;
  // Changes the number of slices of a table, under load: what the table's default draws from, and the number
  // in millrace_schema. No row moves; a smaller number leaves rows `beyond`. Doing it again completes one
  // that was cut short. NotFound for an unknown table, Invalid for a number out of range, Conflict where
  // somebody has the table open for long: try again.
  virtual Status Resize(const TableName& table, std::uint32_t slices) = 0;
  // Gives up to `limit` rows that stand beyond the table's slices a slice of their own by their id; returns
  // how many. Waiting and held rows alone, without waiting for locked ones; a running row keeps its slice and
  // is found when it is back. Safe beside claims and settles, which go by id and attempt.
  virtual Result<std::size_t> RenumberStep(const TableName& table, std::size_t limit) = 0;
  // Compares the live tables with what this program expects, and explains the hot statements on a seeded
  // scratch table. Empty: all is well.
  virtual Result<std::vector<SchemaFinding>> Check() = 0;
};

}  // namespace millrace::engine
