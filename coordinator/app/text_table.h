// Aligned columns for people. Pure.
#pragma once

#include <string>
#include <vector>

namespace millrace {

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

// `name   value` lines with the names aligned; rows with an empty value are left out. Values may have lines.
std::string FieldText(const std::vector<std::pair<std::string, std::string>>& fields);

}  // namespace millrace
