// What may be a query whose rows become tasks: of `submit --from-query`, and of a fan-out. Pure.
#pragma once

#include <string_view>

#include "framework/base/result.h"
#include "framework/task/table_name.h"

namespace millrace::engine {

// One statement that reads: it begins with SELECT, WITH or VALUES, and nothing follows it, and it
// holds no INTO: the server would write the file before anybody could refuse the result. Invalid with what to
// write instead. (It runs in a transaction that is rolled back, so that a WITH that changes rows changes
// none.)
Status CheckQuery(std::string_view sql);

// Whether the text names the table, or the view over its pools, in whatever place. A query that reads what
// its rows are added to page by page would go on for ever.
bool MentionsTable(std::string_view sql, const TableName& table);
// Invalid for such a query, of a schedule whose tasks go to that table.
Status CheckFills(std::string_view sql, const TableName& table);

}  // namespace millrace::engine
