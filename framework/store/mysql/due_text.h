// The texts of the hot statements, which `schema check` explains too. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "framework/store/due_scope.h"
#include "framework/store/task_store.h"

namespace millrace::engine::mysql {

// From 50 tables on a query costs the server the same for each table, however many there are: 1,024 empty
// ones are four queries. The server has them all open while it answers.
inline constexpr std::size_t kTablesPerQuery = 256;
// Before a statement: the plan as a table of rows on all servers (MySQL 9 answers with a tree of its own
// accord).
inline constexpr const char* kExplainInRows = "EXPLAIN FORMAT=TRADITIONAL ";

// May answer with groups that the scope does not cover.
std::string DueText(const TableSlices& scope, WallTime from = {});
// Every group of a table, held rows too; its place stands in the first column.
std::string GroupsText(const TableName& table, std::size_t place);
// The head of one group from its `first_run_at` on.
std::string DueGroupText(const DueGroup& group);
// A row begins with `number`, which tells the requests of one statement apart.
std::string ScanText(const ScanRequest& request, std::size_t number = 0);
// `ids` is a list as sql_text.h makes it; `claimer` is an incarnation's number. The claim's rows have the
// attempt seen; `unchanged` is one more condition, or empty.
std::string ClaimText(const TableName& table, const std::string& ids, std::uint64_t claimer,
                      std::uint32_t attempt, const std::string& unchanged = "");
// FROM … WHERE of the rows that run under this incarnation with this attempt.
std::string RunningRows(const TableName& table, const std::string& ids, std::uint64_t claimer,
                        std::uint32_t attempt);

}  // namespace millrace::engine::mysql
