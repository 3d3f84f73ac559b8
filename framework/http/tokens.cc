#include "framework/http/tokens.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <sstream>

#include "framework/base/escape.h"
#include "framework/base/suggest.h"

namespace millrace::engine {
namespace {

constexpr std::size_t kLongestTokenName = 64;
const std::vector<std::string> kRoles{"view", "operate", "admin"};  // by Role

std::optional<unsigned> HexDigit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

template <class Hash>
std::optional<Hash> ReadHash(std::string_view hex) {
  Hash hash{};
  if (hex.size() != 2 * hash.size()) return std::nullopt;
  for (std::size_t i = 0; i < hash.size(); ++i) {
    const auto high = HexDigit(hex[2 * i]);
    const auto low = HexDigit(hex[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    hash[i] = static_cast<unsigned char>(*high << 4 | *low);
  }
  return hash;
}

}  // namespace

Result<Tokens> Tokens::Parse(std::string_view text, const std::string& source) {
  Tokens tokens;
  std::string problems;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const auto wrong = [&](const std::string& what) {
      problems += (problems.empty() ? "" : "\n") + source + ":" + std::to_string(number) + ": " + what;
    };
    std::istringstream words(line);
    std::string role;
    std::string name;
    std::string hex;
    std::string more;
    if (!(words >> role) || role.starts_with('#')) continue;
    const auto known = std::find(kRoles.begin(), kRoles.end(), role);
    if (known == kRoles.end()) {
      wrong("'" + Escape(role.substr(0, kLongestTokenName)) + "' is no role" + DidYouMean(role, kRoles) +
            ": write view, operate or admin, a name, and the SHA-256 of the token");
      continue;
    }
    if (!(words >> name >> hex) || (words >> more)) {
      wrong("write three words: the role, a name, and the SHA-256 of the token");
      continue;
    }
    const auto hash = ReadHash<Hash>(hex);
    if (!hash) {
      wrong("the third word is no SHA-256: write 64 hex digits, as sha256sum prints them");
      continue;
    }
    const auto same = [&](const Entry& entry) { return entry.name == name || entry.hash == *hash; };
    if (std::any_of(tokens.entries_.begin(), tokens.entries_.end(), same)) {
      wrong("another line has the same name or token");
      continue;
    }
    tokens.entries_.push_back({static_cast<Role>(known - kRoles.begin()), std::move(name), *hash});
  }
  if (!problems.empty()) return Fail(ErrorCode::Invalid, problems);
  if (tokens.entries_.empty()) return Fail(ErrorCode::Invalid, source + ": there is no token in it");
  return tokens;
}

std::optional<Role> Tokens::RoleOf(std::string_view token) const {
  Hash hash{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  std::optional<Role> role;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0) role = entry.role;
  }
  return role;
}

}  // namespace millrace::engine
