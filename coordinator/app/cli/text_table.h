// Aligned columns for people.
#pragma once

#include <string>
#include <vector>

#include "coordinator/app/cli/terminal.h"

namespace millrace::engine {

struct TextTable {
  struct Column {
    std::string title;
    bool right = false;  // numbers
    int lesser = 0;      // where there is no room the column with the highest number goes first; 0: none may
    Ink (*ink)(const std::string& cell) = nullptr;  // nullptr: as a terminal writes
  };
  std::vector<Column> columns;
  std::vector<std::vector<std::string>> rows;  // any text; it is escaped

  // Titles, then the rows. Where they are wider than `width`, lesser columns are left out until the last one
  // has some room, and that is cut; 0: everything is shown. With colours where standard output shows them.
  std::string Text(std::size_t width) const;

 private:
  using Cells = std::vector<std::vector<std::string>>;  // the titles first
  Cells Escaped() const;
  // Those that are shown, in order.
  std::vector<std::size_t> Chosen(const std::vector<std::size_t>& widths, std::size_t width) const;
};
// On standard output, as wide as the terminal.
void PrintTable(const TextTable& table);

struct TextField {
  std::string name;
  std::string value;  // any text; it is escaped
  bool json = false;  // it is JSON and shown as such, so that it can be copied
  Ink ink = Ink::Plain;
};

// The lines of a text, without their ends.
std::vector<std::string> LinesOf(const std::string& text);

// `name   value` lines with the names aligned; rows with an empty value are left out. A value of several
// lines is shown as such, each below the first.
std::string FieldText(const std::vector<TextField>& fields);

}  // namespace millrace::engine
