#include "coordinator/app/input/input_rows.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <set>

#include "coordinator/app/input/csv_reader.h"
#include "coordinator/app/input/json_row.h"
#include "framework/base/escape.h"
#include "framework/base/suggest.h"

namespace millrace::engine {
namespace {

using Cells = std::vector<std::optional<std::string>>;

// What every source checks of a row before it is offered.
Result<NewTask> Checked(NewTask task) {
  BOOST_OUTCOME_TRYV(Validate(task));
  return task;
}

struct Columns {
  std::vector<std::string> names;
  std::vector<std::string> json_names = {};
  std::optional<std::size_t> key;

  Result<NewTask> ToTask(const Cells& cells, const NewTask& defaults) const {
    NewTask task = defaults;
    BOOST_OUTCOME_TRY(params, RowToJson(names, json_names, cells));
    task.params = std::move(params);
    if (key) {
      if (!cells[*key] || cells[*key]->empty()) {
        return Fail(ErrorCode::Invalid, "the key column '" + names[*key] + "' is empty in this row");
      }
      task.biz_key = *cells[*key];
    }
    return Checked(std::move(task));
  }
};

Result<Columns> MakeColumns(std::vector<std::string> names, const std::string& key_column,
                            const std::string& where) {
  Columns columns;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) return Fail(ErrorCode::Invalid, where + ": a column has no name; name every column");
    if (!seen.insert(name).second) {
      return Fail(ErrorCode::Invalid, where + ": two columns are named '" + Escape(name) + "'; rename one");
    }
  }
  if (!key_column.empty()) {
    const auto found = std::find(names.begin(), names.end(), key_column);
    if (found == names.end()) {
      std::string all;
      for (const std::string& name : names) all += (all.empty() ? "" : ", ") + Escape(name);
      const std::string hint = DidYouMean(key_column, names);
      return Fail(ErrorCode::Invalid, where + ": there is no column '" + key_column + "' for --key-column" +
                                          (hint.empty() ? "; the columns are " + all : hint));
    }
    columns.key = static_cast<std::size_t>(found - names.begin());
  }
  for (const std::string& name : names) columns.json_names.push_back(NameToJson(name));
  columns.names = std::move(names);
  return columns;
}

class CsvRows final : public InputRows {
 public:
  CsvRows(std::unique_ptr<std::istream> input, NewTask defaults)
      : input_(std::move(input)), reader_(*input_), defaults_(std::move(defaults)) {}

  Status ReadHeader(const std::string& name, const std::string& key_column) {
    const auto header = reader_.Next();
    if (!header)
      return Fail(ErrorCode::Invalid, name + ": the file is empty; its first line must name the columns");
    const std::string where = name + ":" + std::to_string(header->line);
    if (!header->problem.empty()) return Fail(ErrorCode::Invalid, where + ": " + header->problem);
    BOOST_OUTCOME_TRY(columns, MakeColumns(header->fields, key_column, where));
    columns_ = std::move(columns);
    return {};
  }

  std::optional<InputRow> Next() override {
    auto record = reader_.Next();
    if (!record) return std::nullopt;
    return InputRow{record->line, ToTask(*record)};
  }

 private:
  Result<NewTask> ToTask(CsvRecord& record) {
    if (!record.problem.empty()) return Fail(ErrorCode::Invalid, record.problem);
    if (record.fields.size() != columns_.names.size()) {
      return Fail(ErrorCode::Invalid, "the row has " + std::to_string(record.fields.size()) +
                                          (record.fields.size() == 1 ? " field" : " fields") +
                                          " where the header has " + std::to_string(columns_.names.size()));
    }
    Cells cells;
    for (std::string& field : record.fields) cells.emplace_back(std::move(field));
    return columns_.ToTask(cells, defaults_);
  }

  std::unique_ptr<std::istream> input_;
  CsvReader reader_;
  NewTask defaults_;
  Columns columns_;
};

class JsonRows final : public InputRows {
 public:
  JsonRows(std::unique_ptr<std::istream> input, NewTask defaults, std::string key_column)
      : input_(std::move(input)), defaults_(std::move(defaults)), key_column_(std::move(key_column)) {}

  std::optional<InputRow> Next() override {
    std::string line;
    while (std::getline(*input_, line)) {
      ++line_;
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      auto task = LineToTask(line, defaults_, key_column_);
      return InputRow{line_, task ? Checked(std::move(*task)) : std::move(task)};
    }
    return std::nullopt;
  }

 private:
  std::unique_ptr<std::istream> input_;
  NewTask defaults_;
  std::string key_column_;
  std::size_t line_ = 0;
};

class QueryRows final : public InputRows {
 public:
  QueryRows(std::vector<Cells> rows, Columns columns, NewTask defaults)
      : rows_(std::move(rows)), columns_(std::move(columns)), defaults_(std::move(defaults)) {}
  std::optional<InputRow> Next() override {
    if (next_ == rows_.size()) return std::nullopt;
    const Cells cells = std::move(rows_[next_++]);
    return InputRow{next_, columns_.ToTask(cells, defaults_)};
  }

 private:
  std::vector<Cells> rows_;
  Columns columns_;
  NewTask defaults_;
  std::size_t next_ = 0;
};

}  // namespace

Result<std::unique_ptr<InputRows>> ReadCsv(std::unique_ptr<std::istream> input, const std::string& name,
                                           const NewTask& defaults, const std::string& key_column) {
  auto rows = std::make_unique<CsvRows>(std::move(input), defaults);
  BOOST_OUTCOME_TRYV(rows->ReadHeader(name, key_column));
  return std::unique_ptr<InputRows>(std::move(rows));
}

Result<std::unique_ptr<InputRows>> RowsOfQuery(SqlResult result, const NewTask& defaults,
                                               const std::string& key_column) {
  BOOST_OUTCOME_TRY(columns, MakeColumns(result.columns, key_column, "the query"));
  return std::unique_ptr<InputRows>(
      std::make_unique<QueryRows>(std::move(result.rows), std::move(columns), defaults));
}

Result<std::unique_ptr<InputRows>> OpenInputFile(const std::string& path, const NewTask& defaults,
                                                 const std::string& key_column) {
  const auto jsonl = [&](std::unique_ptr<std::istream> input) -> std::unique_ptr<InputRows> {
    return std::make_unique<JsonRows>(std::move(input), defaults, key_column);
  };
  if (path == "-") return jsonl(std::make_unique<std::istream>(std::cin.rdbuf()));
  const bool csv = path.ends_with(".csv");
  if (!csv && !path.ends_with(".jsonl")) {
    return Fail(ErrorCode::Invalid,
                path +
                    ": --from reads files that end in .csv or .jsonl, or - for JSONL from "
                    "standard input");
  }
  errno = 0;
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file || (file->peek(), file->bad())) {
    return Fail(ErrorCode::Invalid, path + " can't be read: " + std::strerror(errno == 0 ? EIO : errno));
  }
  file->clear();
  if (csv) return ReadCsv(std::move(file), path, defaults, key_column);
  return jsonl(std::move(file));
}

}  // namespace millrace::engine
