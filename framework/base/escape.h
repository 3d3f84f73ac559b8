// Makes a text safe to show. What a task, a handler or a server says may hold bytes that a terminal obeys,
// that turn the order of what a person reads, or that are no text at all: every output escapes what it shows,
// once, and what is stored stays as it was said. Pure.
#pragma once

#include <string>
#include <string_view>

namespace millrace::engine {

enum class Backslash {
  Doubled,  // data: the text can be read back to the byte
  Kept,     // a sentence whose quoted parts were escaped when it was made: escaping it again changes nothing
};

// Controls (C0, DEL, C1), separators of lines, and what sets the direction of writing become `\n`, `\t`,
// `\r`,
// `\x1b` or `\u{202e}`; a byte that is no UTF-8 becomes `\xff`, and a backslash is doubled. All else stays.
// So the result is valid UTF-8 on one line, and no two texts have the same.
std::string Escape(std::string_view text, Backslash backslash = Backslash::Doubled);

// The same for a text that is JSON, which stays JSON of the same meaning: such characters become `\u202e`.
// Line feeds stay, since JSON has them between its parts alone. A byte that is no UTF-8 becomes U+FFFD.
std::string EscapeJson(std::string_view json);

// What no database takes: a byte that is no UTF-8, and a zero byte, become `\xff`. The rest stays as it was
// said.
std::string EscapeBroken(std::string_view text);

}  // namespace millrace::engine
