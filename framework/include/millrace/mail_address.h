// The one rule of what is a mail address here: for the configuration, and for whoever sends mail.
#pragma once

#include <algorithm>
#include <string_view>

namespace millrace {

inline constexpr std::size_t kLongestMailAddress = 254;  // RFC 5321

// An address that can stand in an envelope and a header as it is: one @ with text on both sides, ASCII, no
// spaces, controls, commas, quotes or brackets, and no hyphen at its beginning, where a program would take it
// for an option.
inline bool IsMailAddress(std::string_view text) {
  const std::size_t at = text.find('@');
  if (at == 0 || at == std::string_view::npos || at + 1 == text.size() || text.size() > kLongestMailAddress)
    return false;
  if (text.front() == '-' || text.find('@', at + 1) != std::string_view::npos) return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return c > 0x20 && c < 0x7F && std::string_view("<>(),;:\\\"[]").find(c) == std::string_view::npos;
  });
}

}  // namespace millrace
