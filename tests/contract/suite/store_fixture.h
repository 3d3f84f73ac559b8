// What the contract suite needs of a store under test: a fresh, empty shard, and a producer beside it that
// works with the database's own means, not through the store.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "framework/base/result.h"
#include "framework/store/store.h"

namespace millrace::engine {

// A row as a producer inserts it. Absent members are left to the table's defaults.
struct PlainRow {
  std::string handler = "noop";
  std::string params = "{}";
  std::optional<std::uint32_t> slice;
  std::optional<int> state;
  std::optional<int> priority;
  std::optional<WallTime> run_at;
  std::optional<std::string> biz_key;
  std::optional<std::string> batch;
  std::optional<std::uint32_t> attempt;
  std::optional<std::uint32_t> failures;
};

// One shard, made by SchemaStore::Apply and empty; removed with the fixture. Used by one thread.
class StoreFixture {
 public:
  virtual ~StoreFixture() = default;

  virtual Store& store() = 0;

  // Returns the id that the database gave. Invalid where a constraint refuses the row.
  virtual Result<std::uint64_t> Insert(const TableName& table, const PlainRow& row) = 0;
  // Out of every pool: what pruning does to an ended task, and a lossy failover to any.
  virtual Status Remove(const TableName& table, std::uint64_t id) = 0;
  // Lets the retention of every key that has ended run out.
  virtual Status ExpireKeys() = 0;
  // The row of a life's beat alone.
  virtual Status DeleteBeat(const std::string& incarnation) = 0;

  // A transaction of a producer that has inserted this row and not yet committed it. `commit` makes it seen.
  // Where late_commits() is false the store admits one writer at a time, and there is no such thing.
  class LateRow {
   public:
    virtual ~LateRow() = default;
    virtual std::uint64_t id() const = 0;
    virtual Status Commit() = 0;
  };
  virtual bool late_commits() const { return false; }
  // A map brings the tasks that it is asked for by their ids.
  virtual bool brings_tasks() const { return false; }
  virtual std::unique_ptr<LateRow> InsertLate(const TableName&, const PlainRow&) { return nullptr; }
};

// A connection of the database's own client library: one thread at a time, autocommit until it is told BEGIN.
class SqlClient {
 public:
  virtual ~SqlClient() = default;
  virtual Result<SqlResult> Run(const std::string& sql) = 0;
};

// A fixture of a store that speaks SQL. The producer's part is rendered here; adapters open clients.
class SqlFixture : public StoreFixture {
 public:
  virtual std::unique_ptr<SqlClient> NewClient() = 0;

  Result<std::uint64_t> Insert(const TableName& table, const PlainRow& row) override;
  Status Remove(const TableName& table, std::uint64_t id) override;
  Status ExpireKeys() override;
  Status DeleteBeat(const std::string& incarnation) override;
  std::unique_ptr<LateRow> InsertLate(const TableName& table, const PlainRow& row) override;

  // One row and column, for looking behind the store's back. Empty where there is no row or it is NULL.
  Result<std::string> Ask(const std::string& sql);

 protected:
  // The expression that gives the id of this connection's last INSERT.
  virtual std::string LastId() const = 0;

 private:
  SqlClient& Client();
  std::unique_ptr<SqlClient> client_;
};

// 'YYYY-MM-DD HH:MM:SS.ffffff', with its quotes: how both databases take a time.
std::string SqlTime(WallTime time);

// A kind of store for testing::Values. `make` gives an empty shard made for `spec`, or dies with a message.
struct StoreKind {
  std::string name;
  std::function<std::unique_ptr<StoreFixture>(const SchemaSpec& spec)> make;
};
struct SqlStoreKind {
  std::string name;
  std::function<std::unique_ptr<SqlFixture>(const SchemaSpec& spec)> make;
};
inline void PrintTo(const StoreKind& kind, std::ostream* out) { *out << kind.name; }
inline void PrintTo(const SqlStoreKind& kind, std::ostream* out) { *out << kind.name; }

}  // namespace millrace::engine
