// Where sessions send their statements when they are not meant: into one transaction, which is rolled back.
// Each statement is explained before it runs, and what the server would do badly is a finding.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "framework/store/mysql/session.h"
#include "framework/store/schema_store.h"

namespace millrace::engine::mysql {

// One thread. Sessions whose endpoint names it have no connection of their own.
class Rehearsal {
 public:
  // The transaction is `session`'s. `table` is a task table of the rehearsal's own, as large as
  // RehearsalStage wants it.
  Rehearsal(Session& session, const TableName& table) : session_(session), table_(table) {}

  // Walks through all statements; the transaction is over afterwards.
  Result<std::vector<SchemaFinding>> Run(const Endpoint& endpoint);

  // What a session calls.
  Status Query(const std::string& sql, const Session::OnRow& on_row);
  Result<std::uint64_t> Write(const std::string& sql);
  Status Begin() { return Control("SAVEPOINT rehearsed"); }
  Status Commit() { return Control("RELEASE SAVEPOINT rehearsed"); }
  void Rollback() { (void)Control("ROLLBACK TO SAVEPOINT rehearsed"); }
  int last_code() const { return last_code_; }

 private:
  Status Control(const char* sql);
  Status Explain(const std::string& sql);
  void Judge(const std::string& sql, const Row& line);

  Session& session_;
  const TableName table_;
  int refuse_ = 0;  // so many writes from now on one finds a lock; 0: none
  int last_code_ = 0;
  std::set<std::string> told_;
  std::vector<SchemaFinding> findings_;
};

}  // namespace millrace::engine::mysql
