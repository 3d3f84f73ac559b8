// What standard output, error and input are, and the only way to print there: text that is safe to show.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/result.h"

namespace millrace::engine {

bool OutputIsTerminal();
bool ErrorIsTerminal();
bool InputIsTerminal();
// To the line's beginning, and away with what stands in it: a progress line, before something else is
// printed.
inline constexpr const char* kClearLine = "\r\x1b[2K";

// What a text means, for the eye. Terminals show it, unless NO_COLOR or TERM=dumb says no.
enum class Ink { Plain, Good, Bad, Caution, Active, Quiet };
// The text in that colour where standard output, or standard error, is such a terminal; otherwise as it is.
std::string ForOutput(Ink ink, std::string text);
std::string ForError(Ink ink, std::string text);

// Columns of the terminal at standard error or output; 80 where it is not known.
std::size_t TerminalWidth();

// All that is printed is escaped line by line, and backslashes are kept: what quotes foreign text escapes it
// there, one to one (see framework/base/escape.h). Of what a terminal obeys the colours of ForOutput and
// ForError alone pass.
//
// From now on errors are JSON: a command was given --json.
void PrintErrorsAsJson();
// To standard error. For people `millrace: ` and the message; for programs one line,
// {"error":{"message":"…","code":"not_found"}}.
void PrintError(const Error& error);
// One that has no code of its own: `failed`.
void PrintError(std::string_view message);
// A line on standard error that is not an error.
void PrintNote(std::string_view text);
// A line, or lines, on standard output. What can't be written there is lost.
void PrintLine(std::string_view text);
// The errno of the first that was lost, such as EPIPE where the reader has gone; 0: none was.
int OutputError();

// The question before something is done to many. Done where `yes` is set or a person at the terminal answers
// y. Conflict where there is no terminal to ask, and where the answer is anything else.
Status Confirm(const std::string& question, bool yes);

}  // namespace millrace::engine
