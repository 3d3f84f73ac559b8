// The rows of a table as the params that handlers read. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "framework/base/result.h"

namespace millrace::engine {

// A JSON number that reads back as what it says: no leading zeros, and neither larger nor more exact than
// what readers of JSON keep (whole numbers of 64 bits, 17 significant digits).
bool IsFaithfulNumber(std::string_view text);

// How the values of a column are read: each as it looks, or all of them as texts.
enum class CellType { AsItLooks, Text };

// One cell as JSON: an empty one is null, a number stays a number as it is written, the rest are texts.
// Invalid if it is not UTF-8.
Result<std::string> CellToJson(std::string_view cell, CellType type = CellType::AsItLooks);

// The name as it stands in an object; what is no UTF-8 in it is replaced.
std::string NameToJson(std::string_view name);

// A column of a table: its name as it was given, as it stands in an object, and how its cells are read.
struct JsonColumn {
  std::string name;
  std::string json_name;  // by NameToJson
  CellType type = CellType::AsItLooks;
};

// An object of the columns, in their order. `cells` are as many; nullopt is null.
Result<std::string> RowToJson(std::span<const JsonColumn> columns,
                              std::span<const std::optional<std::string>> cells);

}  // namespace millrace::engine
