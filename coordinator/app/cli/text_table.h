// Aligned columns for people.
#pragma once

#include <string>
#include <vector>

namespace millrace::engine {

struct TextTable {
  struct Column {
    std::string title;
    bool right = false;  // numbers
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // any text; it is escaped

  // Titles, then the rows. Where they are wider than `width`, the last column is cut; 0: nothing is cut.
  std::string Text(std::size_t width) const;
};
// On standard output, as wide as the terminal.
void PrintTable(const TextTable& table);

struct TextField {
  std::string name;
  std::string value;  // any text; it is escaped
  bool json = false;  // it is JSON and shown as such, so that it can be copied
};

// `name   value` lines with the names aligned; rows with an empty value are left out.
std::string FieldText(const std::vector<TextField>& fields);

}  // namespace millrace::engine
