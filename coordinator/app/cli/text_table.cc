#include "coordinator/app/cli/text_table.h"

#include <algorithm>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kLeastLastColumn = 12;

std::string Pad(const std::string& text, std::size_t width, bool right) {
  const std::size_t used = DisplayWidth(text);
  const std::string space(width > used ? width - used : 0, ' ');
  return right ? space + text : text + space;
}

void TrimRight(std::string& line) { line.erase(line.find_last_not_of(' ') + 1); }

std::string Shown(const TextField& field) {
  if (!field.json) return Escape(field.value);
  std::string line = EscapeJson(field.value);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return line;
}

}  // namespace

std::string TextTable::Text(std::size_t width) const {
  std::vector<std::vector<std::string>> cells(1);
  for (const Column& column : columns) cells[0].push_back(column.title);
  for (const auto& row : rows) {
    cells.emplace_back();
    for (const std::string& cell : row) cells.back().push_back(Escape(cell));
  }
  std::vector<std::size_t> widths(columns.size(), 0);
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  std::size_t before_last = 0;
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) before_last += widths[i] + 2;
  if (width > 0 && before_last + widths.back() > width) {
    widths.back() = std::max(kLeastLastColumn, width > before_last ? width - before_last : 0);
  }
  std::string text;
  for (const auto& row : cells) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += (i == 0 ? "" : "  ") + Pad(Fit(row[i], widths[i]), widths[i], columns[i].right);
    }
    TrimRight(line);
    text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

void PrintTable(const TextTable& table) { PrintLine(table.Text(OutputIsTerminal() ? TerminalWidth() : 0)); }

std::string FieldText(const std::vector<TextField>& fields) {
  std::size_t width = 0;
  for (const TextField& field : fields) width = std::max(width, field.name.size());
  std::string text;
  for (const TextField& field : fields) {
    if (field.value.empty()) continue;
    text += (text.empty() ? "" : "\n") + Pad(field.name, width, false) + "  " + Shown(field);
  }
  return text;
}

}  // namespace millrace::engine
