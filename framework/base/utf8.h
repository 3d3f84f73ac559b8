// Well-formed UTF-8, as the databases accept it: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace::engine {

// The length of the sequence that `text` (not empty) begins with; 0 if it is not well formed.
std::size_t Utf8SequenceLength(std::string_view text);

// The code point of one well-formed sequence.
char32_t Utf8CodePoint(std::string_view sequence);

bool IsUtf8(std::string_view text);

// What was read, as an error quotes it: its beginning, with `…` where it goes on. Cut between sequences.
std::string Excerpt(std::string_view text, std::size_t limit = 80);

}  // namespace millrace::engine
