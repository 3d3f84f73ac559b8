// The name of a task table, which may stand in SQL and in the names of nodes and files.
#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::engine {

// [a-z][a-z0-9_]*, at most kMaxSize bytes. Whoever holds one need not check it: it comes from ParseTableName,
// or from a literal that the compiler has checked. There is no empty one; where a table may be missing stands
// an optional. A plain value without heap; ordered like its text.
class TableName {
 public:
  static constexpr std::size_t kMaxSize = 48;

  // Does not compile for a literal that is no table's name.
  consteval TableName(const char* literal) {
    const std::string_view text = literal;
    if (!IsValid(text)) NoTableName();
    Take(text);
  }

  constexpr std::string_view text() const { return {text_.data(), size_}; }
  constexpr operator std::string_view() const { return text(); }

  // Zeroes follow the text, so the bytes are ordered as the texts are.
  constexpr auto operator<=>(const TableName&) const = default;
  template <std::convertible_to<std::string_view> Text>
  friend constexpr bool operator==(const TableName& table, const Text& other) {
    return table.text() == std::string_view(other);
  }

  friend std::string operator+(std::string left, const TableName& table) { return left.append(table.text()); }
  friend std::string operator+(const TableName& table, std::string_view right) {
    return std::string(table.text()).append(right);
  }

 private:
  friend std::optional<TableName> ParseTableName(std::string_view text);

  constexpr TableName() = default;

  static constexpr bool IsValid(std::string_view text) {
    return !text.empty() && text.size() <= kMaxSize && text[0] >= 'a' && text[0] <= 'z' &&
           text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == text.npos;
  }
  static void NoTableName();  // is never defined: a call of it does not compile

  constexpr void Take(std::string_view text) {
    text.copy(text_.data(), text.size());
    size_ = static_cast<std::uint8_t>(text.size());
  }

  std::array<char, kMaxSize> text_{};
  std::uint8_t size_ = 0;
};

// The one way from text to a table's name; nullopt for what is none.
std::optional<TableName> ParseTableName(std::string_view text);

// The table of a shard that has one alone.
inline constexpr TableName kDefaultTable = "tasks";

}  // namespace millrace::engine

template <>
struct std::hash<millrace::engine::TableName> {
  std::size_t operator()(const millrace::engine::TableName& table) const noexcept {
    return std::hash<std::string_view>()(table.text());
  }
};
