// The rows of an input as tasks to be added, one at a time, so that a file may be larger than memory.
#pragma once

#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/store/store.h"
#include "framework/task/task.h"

namespace millrace::engine {

struct InputRow {
  std::size_t line = 0;
  Result<NewTask> task;  // Invalid: what is wrong with this row; the others are good
};

class InputRows {
 public:
  virtual ~InputRows() = default;
  // nullopt: the end. Where the source can't be read to its end the last row says so.
  virtual std::optional<InputRow> Next() = 0;
};

// What of a row is not in it.
struct InputRules {
  NewTask defaults;                       // what every row has beside its own
  std::string key_column;                 // its column is the key; empty: none is
  std::string key_prefix = {};            // goes before each key
  std::vector<std::string> text_columns;  // whose values are texts, whatever they look like
  std::string expires_column = {};        // of CSV and queries: by when its row must have started
};

enum class InputFormat { ByName, Csv, Jsonl };

// A file whose name ends in .csv or .jsonl, or of the format named; `-` is standard input, JSONL where no
// format is named. Invalid where nothing can be read at all: no such file, another ending, UTF-16, a header
// that lacks a column of the rules, rules that the format does not know.
Result<std::unique_ptr<InputRows>> OpenInputFile(const std::string& path, InputFormat format,
                                                 const InputRules& rules);
Result<std::unique_ptr<InputRows>> ReadCsv(std::unique_ptr<std::istream> input, const std::string& name,
                                           const InputRules& rules);
// Without text columns: a value of JSON has its type.
std::unique_ptr<InputRows> ReadJsonl(std::unique_ptr<std::istream> input, const InputRules& rules);
// The rows of a query's result; its lines count from 1.
Result<std::unique_ptr<InputRows>> RowsOfQuery(SqlResult result, const InputRules& rules);
// The rows of a query, read page by page in the order of the key column, for which the rules have a name.
// Those that have no key come first, at most kRowsWithoutKey of them. `query` has passed CheckQuery. The
// error is that of the first page; where a later one can't be read, the last row says so.
Result<std::unique_ptr<InputRows>> RowsInPages(std::shared_ptr<Store> store, const std::string& query,
                                               const InputRules& rules, std::size_t rows_of_page);
inline constexpr std::size_t kRowsWithoutKey = 1'000;

// The rows of `source`, which a thread of its own reads and parses, some thousands of rows ahead, in its
// order. Who goes before its end waits for no input that never comes: once `stop` says so, Next is at the
// end. What reading throws is thrown by Next. Unavailable: no thread.
Result<std::unique_ptr<InputRows>> ReadAhead(
    std::unique_ptr<InputRows> source, std::function<bool()> stop = [] { return false; });

}  // namespace millrace::engine
