// The rows of a query in the order of some of its columns, a page at a time: what `submit --from-query` and a
// fan-out read. Keyset, never OFFSET; each page is a statement in a transaction of its own, which is rolled
// back. framework/store/README.md says what is promised of rows that change meanwhile.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "framework/store/task_transaction.h"

namespace millrace::engine {

// The key columns of one row: what is read next stands at it or behind it.
struct QueryPlace {
  struct Value {
    SqlKind kind = SqlKind::Null;
    std::string text;
    bool operator==(const Value&) const = default;
  };
  std::vector<Value> values;
  bool operator==(const QueryPlace&) const = default;
};

// As it is kept in a table: JSON, and read back as it was.
std::string ToText(const QueryPlace& place);
// Invalid for a text that ToText did not write.
Result<QueryPlace> ParsePlace(std::string_view text);

// One thread.
class QueryPages {
 public:
  // `query` has passed CheckQuery; `keys` are columns of it, one or more; a page has at most `limit` rows,
  // two or more. With `after` it goes on behind that row, without those that have its very key.
  QueryPages(std::unique_ptr<TaskTransaction> transaction, std::string query, std::vector<std::string> keys,
             std::size_t limit, std::optional<QueryPlace> after = std::nullopt);

  // The columns that it gives, whether or not the keys are among them.
  Result<std::vector<std::string>> Columns();
  // Rows that no page has, since a key column of theirs is NULL; at most `limit`.
  Result<std::vector<SqlCells>> WithoutKey(std::size_t limit);
  // The next page; it may be empty before the end. Invalid where a key column is not among those of the
  // query, its order can't be told by its values, or more rows than a page has have one key. After an error
  // the same page may be read again.
  Result<SqlResult> Next();
  // The last page was the last.
  bool ended() const { return ended_; }
  // The last row that was read; nullopt: none yet.
  const std::optional<QueryPlace>& place() const { return place_; }

 private:
  std::string From() const;
  Result<SqlResult> Read(const std::string& sql, const std::vector<SqlValue>& values);
  Status FindKeys(const std::vector<std::string>& columns);
  Result<QueryPlace> PlaceOf(const SqlResult& page) const;
  bool StandsAtPlace(const SqlCells& row) const;
  void LeaveOutKnown(SqlResult& page);

  const std::unique_ptr<TaskTransaction> transaction_;
  const std::string query_;
  const std::vector<std::string> keys_;
  const std::size_t limit_;
  std::optional<QueryPlace> place_;
  std::vector<std::size_t> indices_;                 // of the key columns
  std::optional<std::multiset<SqlCells>> previous_;  // the page before; nullopt: another process had it
  bool ended_ = false;
};

}  // namespace millrace::engine
