// Who may ask a server for what: a file of tokens, of which it keeps only the hashes. Pure.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/result.h"

namespace millrace::engine {

// Each may what the one before may, and more.
enum class Role { View, Operate, Admin };

// Immutable, so thread-safe.
class Tokens {
 public:
  // A line each: role (`view`, `operate`, `admin`), name, SHA-256 of the token as 64 hex digits. Empty lines
  // and those that begin with `#` are skipped. Invalid with every bad line and its number, `FILE:3: …`, and
  // for a file without a token; no message shows a hash.
  static Result<Tokens> Parse(std::string_view text, const std::string& source);

  // The role of the token; nullopt: nobody's. Takes as long for any token of the same length.
  std::optional<Role> RoleOf(std::string_view token) const;

 private:
  using Hash = std::array<unsigned char, 32>;
  struct Entry {
    Role role;
    std::string name;
    Hash hash;
  };

  std::vector<Entry> entries_;
};

}  // namespace millrace::engine
