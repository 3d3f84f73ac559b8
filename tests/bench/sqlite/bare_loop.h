// A drain on SQLite: its ceiling, which is what the statements cost with nothing around them, and what all
// drains there have in common. Dies with a message on any error.
#pragma once

#include <sqlite3.h>

#include <cstddef>
#include <string>

namespace millrace::bench {

[[noreturn]] void Die(const std::string& what);

// A connection as the store has its own: WAL, durable commits.
class SqliteFile {
 public:
  explicit SqliteFile(const std::string& path);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  sqlite3* handle() const { return db_; }
  void Run(const std::string& script);
  // The first cell of the first row.
  double Number(const std::string& sql);

 private:
  sqlite3* db_ = nullptr;
};

// As a plain INSERT without a slice spreads them.
void FillNoops(SqliteFile& file, std::size_t rows);
// Tasks a second over the middle eight tenths of what is in tasks_done. Dies where there are not so many
// rows.
double MiddleRate(SqliteFile& file, std::size_t rows);

// The tables of tables.sql.
void MakeTables(SqliteFile& file);
// Due map, keyset scan, claim and settle of all waiting tasks, `batch` a transaction, on one connection, each
// statement prepared once.
void DrainBare(SqliteFile& file, std::size_t batch);

}  // namespace millrace::bench
