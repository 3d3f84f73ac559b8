// Texts that try to break out of whatever they are shown in.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

namespace millrace::engine {

// Random bytes, mixed with what matters: quotes, backslashes, controls, sequences that turn the direction of
// writing, sequences that are cut short, overlong or surrogates, and texts that look escaped already.
inline rc::Gen<std::string> AnyText() {
  const auto piece = rc::gen::oneOf(
      rc::gen::element<std::string>("\\", "\"", "\\\"", "\n", "\t", "\r", " ", "=", "'", "\x1b[2J", "\x7f",
                                    std::string(1, '\0'), "\xC2\x9B", "\xC2\x80", "\xC2\xA0", "\xE2\x80\xAE",
                                    "\xE2\x81\xA6", "\xE2\x80\x8E", "\xD8\x9C", "\xE2\x80\xA8", "\\n",
                                    "\\x1b", "\\u{202e}", "\\\\", "\xC0\x80", "\xED\xA0\x80",
                                    "\xF4\x90\x80\x80", "\xE2\x80", "é", "日", "\xF0\x9F\x90\x8C"),
      rc::gen::container<std::string>(rc::gen::arbitrary<char>()));
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(piece), [](const auto& pieces) {
    std::string text;
    for (const std::string& one : pieces) text += one;
    return text;
  });
}

// Nothing of this may reach a terminal; told apart from the code under test on purpose.
inline bool HoldsNothingUnsafe(const std::string& text) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto at = [&](std::size_t offset) {
      return i + offset < text.size() ? static_cast<unsigned char>(text[i + offset]) : 0U;
    };
    if (at(0) < 0x20 || at(0) == 0x7F) return false;
    if (at(0) == 0xC2 && at(1) < 0xA0) return false;                                       // C1
    if (at(0) == 0xD8 && at(1) == 0x9C) return false;                                      // U+061C
    if (at(0) == 0xE2 && at(1) == 0x80 && (at(2) == 0x8E || at(2) == 0x8F)) return false;  // U+200E, F
    if (at(0) == 0xE2 && at(1) == 0x80 && at(2) >= 0xA8 && at(2) <= 0xAE) return false;    // U+2028 … E
    if (at(0) == 0xE2 && at(1) == 0x81 && at(2) >= 0xA6 && at(2) <= 0xA9) return false;    // U+2066 … 9
  }
  return true;
}

}  // namespace millrace::engine
