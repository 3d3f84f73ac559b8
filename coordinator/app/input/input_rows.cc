#include "coordinator/app/input/input_rows.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <set>

#include "coordinator/app/input/csv_reader.h"
#include "coordinator/app/input/json_row.h"
#include "framework/base/clock.h"
#include "framework/base/escape.h"
#include "framework/base/suggest.h"
#include "framework/base/time_text.h"
#include "framework/base/utf8.h"
#include "framework/store/query_pages.h"
#include "framework/store/row_params.h"
#include "framework/task/expiry.h"

namespace millrace::engine {
namespace {

using Cells = std::vector<std::optional<std::string>>;

// A read that failed looks like the end, and is none. Standard input has its own mark for it.
bool IsCut(const std::istream& input) {
  return input.bad() || (input.rdbuf() == std::cin.rdbuf() && std::ferror(stdin) != 0);
}

// In place of all the rows that can't be read.
InputRow Unread(std::size_t line) {
  return {line, Fail(ErrorCode::Invalid,
                     "the input can't be read from here on, and this is not its end: the system reports an "
                     "error; submit it again once that is mended, with keys nothing is added twice")};
}

constexpr const char* kUtf16 =
    "this is UTF-16 and not UTF-8: convert it, for example with iconv -f UTF-16 -t UTF-8";

// What every source does to a row before it is offered.
Result<NewTask> Finished(NewTask task, const InputRules& rules) {
  if (task.biz_key.empty() && !rules.key_prefix.empty()) {
    return Fail(ErrorCode::Invalid,
                "the row has no key for --key-prefix to go before: give it a 'key' beside its params, or "
                "name a member of these with --key-column");
  }
  if (!task.biz_key.empty()) task.biz_key.insert(0, rules.key_prefix);
  BOOST_OUTCOME_TRYV(Validate(task));
  BOOST_OUTCOME_TRYV(CheckExpiry(task, SystemClock().WallNow()));
  return task;
}

struct Columns {
  std::vector<JsonColumn> all;
  std::optional<std::size_t> key;
  std::optional<std::size_t> expires;

  Result<NewTask> ToTask(const Cells& cells, const InputRules& rules) const {
    NewTask task = rules.defaults;
    BOOST_OUTCOME_TRY(params, RowToJson(all, cells));
    task.params = std::move(params);
    if (key) {
      if (!cells[*key] || cells[*key]->empty()) {
        return Fail(ErrorCode::Invalid,
                    "the key column '" + Excerpt(all[*key].name) + "' is empty in this row");
      }
      task.biz_key = *cells[*key];
    }
    if (expires && cells[*expires] && !cells[*expires]->empty()) {
      const auto at = ParseTime(*cells[*expires]);
      if (!at) {
        return Fail(ErrorCode::Invalid,
                    "the expiry column '" + Excerpt(all[*expires].name) + "': " + at.error().message);
      }
      task.expires_at = *at;
      task.expires_in.reset();
    }
    return Finished(std::move(task), rules);
  }
};

// The names as an error quotes them: a file that is no table has a first line without end.
std::string Listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 20;
  std::string all;
  for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) {
    all += (i == 0 ? "" : ", ") + Escape(Excerpt(names[i]));
  }
  return names.size() <= kMost ? all : all + " and " + std::to_string(names.size() - kMost) + " more";
}

// Where the column stands; Invalid, with the nearest, where there is none of that name.
Result<std::size_t> Place(const std::string& column, const std::vector<std::string>& names, const char* flag,
                          const std::string& where) {
  const auto found = std::find(names.begin(), names.end(), column);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  const std::string hint = DidYouMean(column, names);
  return Fail(ErrorCode::Invalid, where + ": there is no column '" + column + "' for " + flag +
                                      (hint.empty() ? "; the columns are " + Listed(names) : hint));
}

Result<Columns> MakeColumns(const std::vector<std::string>& names, const InputRules& rules,
                            const std::string& where) {
  Columns columns;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (name.empty()) return Fail(ErrorCode::Invalid, where + ": a column has no name; name every column");
    if (!seen.insert(name).second) {
      return Fail(ErrorCode::Invalid,
                  where + ": two columns are named '" + Escape(Excerpt(name)) + "'; rename one");
    }
    columns.all.push_back({name, NameToJson(name)});
  }
  if (rules.key_column.empty() && !rules.key_prefix.empty())
    return Fail(ErrorCode::Invalid, where + ": --key-prefix goes with --key-column: the rows have no keys");
  if (!rules.key_column.empty()) {
    BOOST_OUTCOME_TRY(place, Place(rules.key_column, names, "--key-column", where));
    columns.key = place;
  }
  if (!rules.expires_column.empty()) {
    BOOST_OUTCOME_TRY(place, Place(rules.expires_column, names, "--expires-column", where));
    columns.expires = place;
  }
  for (const std::string& column : rules.text_columns) {
    BOOST_OUTCOME_TRY(place, Place(column, names, "--text-columns", where));
    columns.all[place].type = CellType::Text;
  }
  return columns;
}

class CsvRows final : public InputRows {
 public:
  CsvRows(std::unique_ptr<std::istream> input, InputRules rules)
      : input_(std::move(input)), reader_(*input_), rules_(std::move(rules)) {}

  Status ReadHeader(const std::string& name) {
    const auto header = reader_.Next();
    if (IsCut(*input_)) return Fail(ErrorCode::Invalid, name + ": " + Unread(1).task.error().message);
    if (!header)
      return Fail(ErrorCode::Invalid, name + ": the file is empty; its first line must name the columns");
    const std::string where = name + ":" + std::to_string(header->line);
    if (!header->problem.empty()) return Fail(ErrorCode::Invalid, where + ": " + header->problem);
    for (const std::string& field : header->fields) {
      if (field.find('\0') != std::string::npos) return Fail(ErrorCode::Invalid, where + ": " + kUtf16);
      if (field.find('\r') != std::string::npos)  // the whole file would be its header
        return Fail(ErrorCode::Invalid, where +
                                            ": a carriage return stands in the name of a column: end each "
                                            "line by LF or CRLF");
      if (const auto name_json = CellToJson(field); !name_json)
        return Fail(ErrorCode::Invalid, where + ": " + name_json.error().message);
    }
    if (header->fields.size() == 1 && header->fields[0].find_first_of(";\t") != std::string::npos) {
      return Fail(ErrorCode::Invalid, where + ": there is one column, '" +
                                          Escape(Excerpt(header->fields[0])) +
                                          "': the fields must be separated by commas");
    }
    BOOST_OUTCOME_TRY(columns, MakeColumns(header->fields, rules_, where));
    columns_ = std::move(columns);
    return {};
  }

  std::optional<InputRow> Next() override {
    if (cut_) return std::nullopt;
    std::optional<CsvRecord> record;
    try {
      record = reader_.Next();
    } catch (const std::ios_base::failure&) {  // what a file's buffer says of an error
      input_->setstate(std::ios::badbit);
    }
    cut_ = IsCut(*input_);
    if (cut_) return Unread(line_ + 1);
    if (!record) return std::nullopt;
    line_ = record->line;
    return InputRow{record->line, ToTask(*record)};
  }

 private:
  Result<NewTask> ToTask(CsvRecord& record) {
    if (!record.problem.empty()) return Fail(ErrorCode::Invalid, record.problem);
    if (record.fields.size() != columns_.all.size()) {
      return Fail(ErrorCode::Invalid, "the row has " + std::to_string(record.fields.size()) +
                                          (record.fields.size() == 1 ? " field" : " fields") +
                                          " where the header has " + std::to_string(columns_.all.size()));
    }
    Cells cells;
    for (std::string& field : record.fields) cells.emplace_back(std::move(field));
    return columns_.ToTask(cells, rules_);
  }

  std::unique_ptr<std::istream> input_;
  CsvReader reader_;
  InputRules rules_;
  Columns columns_;
  std::size_t line_ = 1;  // of the last record
  bool cut_ = false;      // it could not be read to its end
};

class JsonRows final : public InputRows {
 public:
  JsonRows(std::unique_ptr<std::istream> input, InputRules rules)
      : input_(std::move(input)), rules_(std::move(rules)) {}

  std::optional<InputRow> Next() override {
    std::string line;
    while (!cut_ && ReadLine(line)) {
      if (IsCut(*input_)) break;  // half a line
      ++line_;
      if (line.size() >= kLongestLine) {
        return InputRow{line_,
                        Fail(ErrorCode::Invalid,
                             "the line is longer than 1 MiB, which no task is: end each task's JSON by "
                             "a line feed, and write none within it")};
      }
      if (!line.empty() && line.back() == '\r') line.pop_back();
      if (line_ == 1 && line.starts_with("\xEF\xBB\xBF")) line.erase(0, 3);
      if (line.find_first_not_of(" \t") == std::string::npos) continue;
      auto task = LineToTask(line, rules_.defaults, rules_.key_column);
      return InputRow{line_, task ? Finished(std::move(*task), rules_) : std::move(task)};
    }
    if (cut_ || !IsCut(*input_)) return std::nullopt;
    cut_ = true;
    return Unread(line_ + 1);
  }

 private:
  // Far more than a task's params, whatever is escaped in them. A file that is no JSONL has one line.
  static constexpr std::size_t kLongestLine = 1024 * 1024;

  // False: the end, or an error. Of a line that is too long the first kLongestLine bytes.
  bool ReadLine(std::string& line) {
    input_->getline(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
    const auto read = static_cast<std::size_t>(input_->gcount());
    if (input_->bad()) return false;
    const bool more = input_->fail() && read > 0;
    if (more) {
      input_->clear();
      input_->ignore(std::numeric_limits<std::streamsize>::max(), '\n');
    }
    if (input_->fail()) return false;
    line.assign(buffer_.data(), read - (more || input_->eof() ? 0 : 1));  // without the line feed
    return true;
  }

  std::unique_ptr<std::istream> input_;
  InputRules rules_;
  std::vector<char> buffer_ = std::vector<char>(kLongestLine + 1);
  std::size_t line_ = 0;
  bool cut_ = false;  // it could not be read to its end
};

class QueryRows final : public InputRows {
 public:
  QueryRows(std::vector<Cells> rows, Columns columns, InputRules rules)
      : rows_(std::move(rows)), columns_(std::move(columns)), rules_(std::move(rules)) {}
  std::optional<InputRow> Next() override {
    if (next_ == rows_.size()) return std::nullopt;
    const Cells cells = std::move(rows_[next_++]);
    return InputRow{next_, columns_.ToTask(cells, rules_)};
  }

 private:
  std::vector<Cells> rows_;
  Columns columns_;
  InputRules rules_;
  std::size_t next_ = 0;
};

constexpr Micros kIdleBetweenPages = std::chrono::minutes(1);

class PagedRows final : public InputRows {
 public:
  PagedRows(std::shared_ptr<Store> store, const std::string& query, InputRules rules,
            std::size_t rows_of_page)
      : store_(std::move(store)),
        rules_(std::move(rules)),
        pages_(store_->OpenTransaction(kIdleBetweenPages), query, {rules_.key_column}, rows_of_page) {}

  Status ReadFirst() {
    BOOST_OUTCOME_TRY(names, pages_.Columns());
    BOOST_OUTCOME_TRY(columns, MakeColumns(names, rules_, "the query"));
    columns_ = std::move(columns);
    BOOST_OUTCOME_TRY(without, pages_.WithoutKey(kRowsWithoutKey + 1));
    more_without_ = without.size() > kRowsWithoutKey;
    if (more_without_) without.pop_back();
    without_ = without.size();
    rows_ = std::move(without);
    BOOST_OUTCOME_TRY(page, pages_.Next());
    rows_.insert(rows_.end(), std::make_move_iterator(page.rows.begin()),
                 std::make_move_iterator(page.rows.end()));
    return {};
  }

  std::optional<InputRow> Next() override {
    while (at_ == rows_.size()) {
      if (cut_ || pages_.ended()) return std::nullopt;
      auto page = pages_.Next();
      if (!page) {
        cut_ = true;
        return InputRow{++line_, Fail(ErrorCode::Invalid,
                                      "the query can't be read from here on: " + page.error().message +
                                          "; submit it again once that is mended, nothing is added twice")};
      }
      rows_ = std::move(page->rows);
      at_ = 0;
    }
    const SqlCells cells = std::move(rows_[at_++]);
    ++line_;
    if (more_without_ && line_ == without_) {
      return InputRow{line_,
                      Fail(ErrorCode::Invalid, "the key column '" + Escape(Excerpt(rules_.key_column)) +
                                                   "' is empty in this row, and in more that are not "
                                                   "looked at: leave them out by a WHERE")};
    }
    return InputRow{line_, columns_.ToTask(cells, rules_)};
  }

 private:
  const std::shared_ptr<Store> store_;
  const InputRules rules_;
  QueryPages pages_;
  Columns columns_;
  std::vector<SqlCells> rows_;
  std::size_t at_ = 0;
  std::size_t line_ = 0;
  std::size_t without_ = 0;  // rows without a key, which come first
  bool more_without_ = false;
  bool cut_ = false;  // it could not be read to its end
};

// Its byte order mark can't stand in UTF-8; without one every other byte of a Latin text is NUL.
Status RefuseUtf16(std::istream& input, const std::string& name) {
  const int first = input.peek();
  input.clear();
  if (first == 0xFF || first == 0xFE || first == 0) return Fail(ErrorCode::Invalid, name + ": " + kUtf16);
  return {};
}

Result<InputFormat> FormatOf(const std::string& path, InputFormat named) {
  if (named != InputFormat::ByName) return named;
  if (path == "-" || path.ends_with(".jsonl")) return InputFormat::Jsonl;
  if (path.ends_with(".csv")) return InputFormat::Csv;
  return Fail(ErrorCode::Invalid, path +
                                      ": the name ends neither in .csv nor in .jsonl; say what it holds: "
                                      "--format csv or --format jsonl");
}

Result<std::unique_ptr<std::istream>> OpenStream(const std::string& path) {
  if (path == "-") return std::unique_ptr<std::istream>(std::make_unique<std::istream>(std::cin.rdbuf()));
  errno = 0;
  auto file = std::make_unique<std::ifstream>(path, std::ios::binary);
  if (!*file || (file->peek(), file->bad())) {
    return Fail(ErrorCode::Invalid, path + " can't be read: " + std::strerror(errno == 0 ? EIO : errno));
  }
  file->clear();
  return std::unique_ptr<std::istream>(std::move(file));
}

}  // namespace

Result<std::unique_ptr<InputRows>> ReadCsv(std::unique_ptr<std::istream> input, const std::string& name,
                                           const InputRules& rules) {
  auto rows = std::make_unique<CsvRows>(std::move(input), rules);
  BOOST_OUTCOME_TRYV(rows->ReadHeader(name));
  return std::unique_ptr<InputRows>(std::move(rows));
}

std::unique_ptr<InputRows> ReadJsonl(std::unique_ptr<std::istream> input, const InputRules& rules) {
  return std::make_unique<JsonRows>(std::move(input), rules);
}

Result<std::unique_ptr<InputRows>> RowsOfQuery(SqlResult result, const InputRules& rules) {
  BOOST_OUTCOME_TRY(columns, MakeColumns(result.columns, rules, "the query"));
  return std::unique_ptr<InputRows>(
      std::make_unique<QueryRows>(std::move(result.rows), std::move(columns), rules));
}

Result<std::unique_ptr<InputRows>> RowsInPages(std::shared_ptr<Store> store, const std::string& query,
                                               const InputRules& rules, std::size_t rows_of_page) {
  auto rows = std::make_unique<PagedRows>(std::move(store), query, rules, rows_of_page);
  BOOST_OUTCOME_TRYV(rows->ReadFirst());
  return std::unique_ptr<InputRows>(std::move(rows));
}

Result<std::unique_ptr<InputRows>> OpenInputFile(const std::string& path, InputFormat named,
                                                 const InputRules& rules) {
  BOOST_OUTCOME_TRY(format, FormatOf(path, named));
  if (format == InputFormat::Jsonl && !rules.text_columns.empty()) {
    return Fail(ErrorCode::Invalid,
                "--text-columns is for CSV and queries: in JSON a value in quotes is a text");
  }
  if (format == InputFormat::Jsonl && !rules.expires_column.empty()) {
    return Fail(ErrorCode::Invalid,
                "--expires-column is for CSV and queries: a line of JSON says it beside its params, "
                "{\"params\":{…},\"expires_at\":\"2026-12-01T02:00:00Z\"}");
  }
  const std::string name = path == "-" ? "standard input" : path;
  BOOST_OUTCOME_TRY(input, OpenStream(path));
  BOOST_OUTCOME_TRYV(RefuseUtf16(*input, name));
  if (format == InputFormat::Csv) return ReadCsv(std::move(input), name, rules);
  return ReadJsonl(std::move(input), rules);
}

}  // namespace millrace::engine
