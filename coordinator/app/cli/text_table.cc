#include "coordinator/app/cli/text_table.h"

#include <algorithm>
#include <numeric>

#include "coordinator/app/cli/terminal.h"
#include "coordinator/app/cli/text.h"
#include "framework/base/escape.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kLeastLastColumn = 12;
// As long as there are lesser columns, the last one is not cut to less.
constexpr std::size_t kRoomForLast = 20;

// A line for each line of the value; those behind the first begin at the column `indent`.
std::string Shown(const TextField& field, std::size_t indent) {
  if (field.json) {
    std::string line = EscapeJson(field.value);
    std::replace(line.begin(), line.end(), '\n', ' ');
    return ForOutput(field.ink, line);
  }
  std::string text;
  for (const std::string& line : LinesOf(field.value))
    text += (text.empty() ? "" : "\n" + std::string(indent, ' ')) + ForOutput(field.ink, Escape(line));
  return text;
}

}  // namespace

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    begin = end + 1;
  }
  return lines;
}

TextTable::Cells TextTable::Escaped() const {
  Cells cells(1);
  for (const Column& column : columns) cells[0].push_back(column.title);
  for (const auto& row : rows) {
    cells.emplace_back();
    for (const std::string& cell : row) cells.back().push_back(Escape(cell));
  }
  return cells;
}

std::vector<std::size_t> TextTable::Chosen(const std::vector<std::size_t>& widths, std::size_t width) const {
  std::vector<std::size_t> chosen(columns.size());
  std::iota(chosen.begin(), chosen.end(), 0);
  const auto needed = [&] {
    std::size_t all = 0;
    for (const std::size_t i : chosen) all += (all == 0 ? 0 : 2) + widths[i];
    const std::size_t last = widths[chosen.back()];
    return all - last + std::min(last, kRoomForLast);
  };
  while (width > 0 && needed() > width) {
    const auto least = std::max_element(chosen.begin(), chosen.end(), [this](std::size_t a, std::size_t b) {
      return columns[a].lesser < columns[b].lesser;
    });
    if (columns[*least].lesser == 0) break;
    chosen.erase(least);
  }
  return chosen;
}

std::string TextTable::Text(std::size_t width) const {
  const Cells cells = Escaped();
  std::vector<std::size_t> widths(columns.size(), 0);
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], DisplayWidth(row[i]));
  }
  const std::vector<std::size_t> chosen = Chosen(widths, width);
  const std::size_t last = chosen.back();
  std::size_t before_last = 0;
  for (const std::size_t i : chosen) before_last += i == last ? 0 : widths[i] + 2;
  if (width > 0 && before_last + widths[last] > width)
    widths[last] = std::max(kLeastLastColumn, width > before_last ? width - before_last : 0);
  std::string text;
  for (const auto& row : cells) {
    const bool is_title = &row == &cells.front();
    std::string line;
    std::size_t gap = 0;  // the end of a line has none
    for (const std::size_t i : chosen) {
      const std::string cell = i < row.size() ? Fit(row[i], widths[i]) : "";
      const std::size_t space = widths[i] - std::min(widths[i], DisplayWidth(cell));
      if (!cell.empty()) {
        line += std::string(gap + (columns[i].right ? space : 0), ' ');
        gap = 0;
        line += ForOutput(is_title                    ? Ink::Quiet
                          : columns[i].ink == nullptr ? Ink::Plain
                                                      : columns[i].ink(cell),
                          cell);
      }
      gap += 2 + (cell.empty() || !columns[i].right ? space : 0);
    }
    text += (is_title ? "" : "\n") + line;
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
    const std::string name = field.name + std::string(width - field.name.size(), ' ');
    text += (text.empty() ? "" : "\n") + ForOutput(Ink::Quiet, name) + "  " + Shown(field, width + 2);
  }
  return text;
}

}  // namespace millrace::engine
