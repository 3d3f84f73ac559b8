// The rows of an input as tasks to be added, one at a time, so that a file may be larger than memory.
#pragma once

#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "framework/base/result.h"
#include "framework/store/task_transaction.h"
#include "framework/task/task.h"

namespace millrace::engine {

struct InputRow {
  std::size_t line = 0;
  Result<NewTask> task;  // Invalid: what is wrong with this row; the others are good
};

class InputRows {
 public:
  virtual ~InputRows() = default;
  virtual std::optional<InputRow> Next() = 0;  // nullopt: the end
};

// `path` ends in .csv or .jsonl; `-` is JSONL from standard input. Every row has what `defaults` says beside
// its own. With `key_column` the key of a row is that column. Invalid where nothing can be read at all: no
// such file, another ending, a header that lacks the key column.
Result<std::unique_ptr<InputRows>> OpenInputFile(const std::string& path, const NewTask& defaults,
                                                 const std::string& key_column);
Result<std::unique_ptr<InputRows>> ReadCsv(std::unique_ptr<std::istream> input, const std::string& name,
                                           const NewTask& defaults, const std::string& key_column);
// The rows of a query's result; its lines count from 1.
Result<std::unique_ptr<InputRows>> RowsOfQuery(SqlResult result, const NewTask& defaults,
                                               const std::string& key_column);

// The rows of `source`, which a thread of its own reads and parses, some thousands of rows ahead, in its
// order. Who goes before its end waits for no input that never comes. What reading throws is thrown by Next.
// Unavailable: no thread.
Result<std::unique_ptr<InputRows>> ReadAhead(std::unique_ptr<InputRows> source);

}  // namespace millrace::engine
