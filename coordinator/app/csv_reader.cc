#include "coordinator/app/csv_reader.h"

namespace millrace {
namespace {
constexpr int kEnd = std::char_traits<char>::eof();
}  // namespace

int CsvReader::Get() {
  const int c = input_.rdbuf()->sbumpc();
  if (c == '\n') ++line_;
  if (c != kEnd) ++record_bytes_;
  return c;
}

// A byte order mark, as spreadsheets write it.
void CsvReader::SkipMark() {
  begun_ = true;
  if (Peek() != 0xEF) return;
  Get();
  if (Peek() == 0xBB) Get();
  if (Peek() == 0xBF) Get();
}

void CsvReader::SkipLine() {
  int c = Get();
  while (c != '\n' && c != kEnd) c = Get();
}

void CsvReader::ReadQuoted(CsvRecord& record, std::string& field) {
  Get();  // the opening quote
  while (true) {
    const int c = Get();
    if (c == kEnd || record_bytes_ > kLongestRecord) {
      record.problem =
          "a quote is opened and never closed: close it, or double a quote that belongs to the text";
      if (c != kEnd) input_.setstate(std::ios::eofbit);
      return;
    }
    if (c != '"') {
      field += static_cast<char>(c);
    } else if (Peek() == '"') {
      field += static_cast<char>(Get());
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
    field += static_cast<char>(c);
  }
}

// True if another field of the record follows.
bool CsvReader::EndField() {
  if (Peek() == '\r') Get();
  const int c = Get();
  return c == ',';
}

std::optional<CsvRecord> CsvReader::Next() {
  if (!begun_) SkipMark();
  while (Peek() == '\n' || Peek() == '\r') Get();
  if (input_.eof() || Peek() == kEnd) return std::nullopt;
  CsvRecord record;
  record.line = line_;
  record_bytes_ = 0;
  bool more = true;
  while (more) {
    std::string field;
    if (Peek() == '"') {
      ReadQuoted(record, field);
    } else {
      ReadPlain(record, field);
    }
    record.fields.push_back(std::move(field));
    if (!record.problem.empty()) {
      SkipLine();
      break;
    }
    more = EndField();
  }
  return record;
}

}  // namespace millrace
