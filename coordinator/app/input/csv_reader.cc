#include "coordinator/app/input/csv_reader.h"

namespace millrace::engine {
namespace {
constexpr int kEnd = std::char_traits<char>::eof();
}  // namespace

int CsvReader::Get() {
  int c = kEnd;
  if (ahead_.empty()) {
    c = input_.rdbuf()->sbumpc();
  } else {
    c = static_cast<unsigned char>(ahead_.front());
    ahead_.erase(0, 1);
  }
  if (c == '\n') ++line_;
  if (c != kEnd) ++record_bytes_;
  return c;
}

int CsvReader::Peek() {
  return ahead_.empty() ? input_.rdbuf()->sgetc() : static_cast<unsigned char>(ahead_.front());
}

// A byte order mark, as spreadsheets write it. Other characters begin with its first bytes, too.
void CsvReader::SkipMark() {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  begun_ = true;
  std::string begin;
  while (begin.size() < kMark.size() && Peek() == static_cast<unsigned char>(kMark[begin.size()])) {
    begin += static_cast<char>(Get());
  }
  if (begin != kMark) ahead_ = std::move(begin);
}

void CsvReader::SkipLine() {
  int c = Get();
  while (c != '\n' && c != kEnd) c = Get();
}

void CsvReader::ReadQuoted(CsvRecord& record, std::string& field) {
  Get();  // the opening quote
  while (true) {
    const int c = Get();
    if (c == kEnd) {
      record.problem =
          "a quote is opened and never closed: close it, or double a quote that belongs to the text";
      return;
    }
    if (c != '"') {
      Keep(field, c);
    } else if (Peek() == '"') {
      Keep(field, Get());
    } else {
      break;
    }
  }
  const int next = Peek();
  if (next != ',' && next != '\n' && next != '\r' && next != kEnd) {
    record.problem = "text follows a closing quote: quote the whole field, and double the quotes within it";
  }
}

void CsvReader::ReadPlain(CsvRecord& record, std::string& field) {
  for (int c = Peek(); c != ',' && c != '\n' && c != kEnd; c = Peek()) {
    Get();
    if (c == '\r' && (Peek() == '\n' || Peek() == kEnd)) return;
    if (c == '"' && record.problem.empty()) {
      record.problem = "a quote stands within an unquoted field: quote the whole field, and double the quote";
    }
    Keep(field, c);
  }
}

// True if another field of the record follows.
bool CsvReader::EndField(CsvRecord& record) {
  const bool returned = Peek() == '\r';
  if (returned) Get();
  if (returned && Peek() != '\n' && Peek() != kEnd) {
    record.problem =
        "a carriage return without a line feed follows a closing quote: end each line by LF or CRLF";
    return false;
  }
  return Get() == ',';
}

std::optional<CsvRecord> CsvReader::Next() {
  if (!begun_) SkipMark();
  while (Peek() == '\n' || Peek() == '\r') Get();
  if (Peek() == kEnd) return std::nullopt;
  CsvRecord record;
  record.line = line_;
  record_bytes_ = 0;
  std::size_t last = line_;
  bool too_long = false;
  bool more = true;
  while (more) {
    std::string field;
    if (Peek() == '"') {
      ReadQuoted(record, field);
    } else {
      ReadPlain(record, field);
    }
    last = line_;
    too_long = TooLong();
    if (!too_long) record.fields.push_back(std::move(field));
    more = record.problem.empty() && EndField(record);
  }
  const bool whole = record.problem.empty();
  if (whole && !too_long) return record;
  if (whole) {
    record.problem =
        "the row is longer than 1 MiB, which no task is: end each row by a line feed, and close each quote";
  }
  // A quote that opens by mistake takes whole rows for its text: they are no tasks, and nobody would miss
  // them.
  if (last > record.line) {
    record.problem +=
        "; what stands to line " + std::to_string(last) + " was taken for this row, and none of it was added";
  }
  if (!whole) SkipLine();
  return record;
}

}  // namespace millrace::engine
