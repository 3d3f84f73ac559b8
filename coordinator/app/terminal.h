// What standard output, error and input are, and text that is safe to show there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::engine {

bool OutputIsTerminal();
bool ErrorIsTerminal();
bool InputIsTerminal();
// To the line's beginning, and away with what stands in it: a progress line, before something else is
// printed.
inline constexpr const char* kClearLine = "\r\x1b[2K";
// Columns of the terminal at standard error or output; 80 where it is not known.
std::size_t TerminalWidth();

// All that is printed is escaped line by line, and backslashes are kept: what quotes foreign text escapes it
// there, one to one (see framework/base/escape.h).
//
// For people: `millrace: ` and the message to standard error.
void PrintError(std::string_view message);
// A line on standard error that is not an error.
void PrintNote(std::string_view text);
// A line, or lines, on standard output.
void PrintLine(std::string_view text);

// Columns that the text takes, counting each code point as one.
std::size_t DisplayWidth(std::string_view text);
// Cut to `width` columns with a `…`; what no terminal may get is escaped, and what was escaped stays.
std::string Fit(std::string_view text, std::size_t width);

// 16,049
std::string WithCommas(std::uint64_t number);
// `1 task`, `2 tasks`
std::string Count(std::uint64_t number, const std::string& one, const std::string& many);

}  // namespace millrace::engine
