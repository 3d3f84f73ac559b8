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

// One cell as JSON: a number stays a number as it is written, an empty one is null, the rest are texts.
// Invalid if it is not UTF-8.
Result<std::string> CellToJson(std::string_view cell);

// The name as it stands in an object; what is no UTF-8 in it is replaced.
std::string NameToJson(std::string_view name);

// An object of the columns, in their order. `names` are those of `columns` by NameToJson; `cells` are as
// many; nullopt is null.
Result<std::string> RowToJson(std::span<const std::string> columns, std::span<const std::string> names,
                              std::span<const std::optional<std::string>> cells);

// Invalid, with where it goes wrong, for a text that is not one JSON value.
Status CheckJson(std::string_view text);

// A line of JSONL: {"params":{…},"key","at","in","priority","batch"}, or the bare params. What it does not
// say comes from `defaults`; with `key_column` the key is that member of the params.
Result<NewTask> LineToTask(std::string_view line, const NewTask& defaults, const std::string& key_column);

}  // namespace millrace::engine
