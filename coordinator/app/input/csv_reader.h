// RFC 4180 as it is found in the wild: quotes, line breaks within them, CRLF or LF, a byte order mark.
// Streams.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <vector>

namespace millrace::engine {

struct CsvRecord {
  std::size_t line = 0;  // where it begins, from 1
  std::vector<std::string> fields;
  std::string problem;  // empty: it is well formed; otherwise what is wrong, and the fields mean nothing
};

class CsvReader {
 public:
  // Of a longer record no more is kept: it is read to its end, and a problem.
  static constexpr std::size_t kLongestRecord = 1024 * 1024;

  explicit CsvReader(std::istream& input) : input_(input) {}
  // The next record that is not an empty line; nullopt at the end. After a problem it goes on with the next
  // line.
  std::optional<CsvRecord> Next();

 private:
  int Get();
  int Peek();
  void SkipMark();
  void ReadQuoted(CsvRecord& record, std::string& field);
  void ReadPlain(CsvRecord& record, std::string& field);
  bool TooLong() const { return record_bytes_ > kLongestRecord; }
  void Keep(std::string& field, int c) {
    if (!TooLong()) field += static_cast<char>(c);
  }
  void SkipLine();
  bool EndField(CsvRecord& record);

  std::istream& input_;
  std::string ahead_;  // read already: what began like a byte order mark and was none
  std::size_t line_ = 1;
  std::size_t record_bytes_ = 0;
  bool begun_ = false;
};

}  // namespace millrace::engine
