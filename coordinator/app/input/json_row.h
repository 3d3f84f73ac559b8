// Rows of text as the JSON that handlers read. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "framework/base/result.h"
#include "framework/task/task.h"

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

// Invalid, with where it goes wrong, for a text that is not one JSON object, or in which an object has two
// members of one name: readers of JSON differ in which of them counts.
Status CheckParams(std::string_view text);

// Whether both texts, which are JSON, say the same: spaces, the order of members and the spelling of numbers
// are nothing.
bool SaysTheSame(std::string_view a, std::string_view b);

// A line of JSONL: {"params":{…},"key","at","in","priority","batch"}, or the bare params. What it does not
// say comes from `defaults`; with `key_column` the key is that member of the params.
Result<NewTask> LineToTask(std::string_view line, const NewTask& defaults, const std::string& key_column);

}  // namespace millrace::engine
