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

// What follows a map's own columns where rows of tasks stand beside it (RowsText), which have more.
inline constexpr const char* kNoTask = ",NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL";

// May answer with groups that the scope does not cover.
std::string DueText(const TableSlices& scope, bool with_later = false, const char* beside = "");
// Every group of a table, held rows too; its place stands in the first column.
std::string GroupsText(const TableName& table, std::size_t place);
// No less than `id`, and from there on, where it is known: from the end of the table it may be far to the
// last row that lives. The greatest of kMostNewRows at most.
std::string GreatestText(const TableName& table, std::uint64_t id);
// All groups of the first kMostNewRows rows with a greater id; no time where none of a group's waits.
std::string NewRowsText(const TableName& table, std::uint64_t id);
// The first row of one group that is due after its `first_run_at`.
std::string DueAfterText(const DueGroup& group);
// Those of these rows that wait and are due, of the scope's slices; `ids` is a condition as sql_text.h makes
// it.
std::string RowsText(const TableSlices& scope, const std::string& ids);
// A row begins with `number`, which tells the requests of one statement apart.
std::string ScanText(const ScanRequest& request, std::size_t number = 0);
// At most so many rows of joined requests, slice by slice, with which a row begins.
std::string ScanJoinedText(std::span<const ScanRequest> requests, std::size_t limit);
// `ids` is a condition as sql_text.h makes it; `claimer` is an incarnation's number. The claim's rows have
// the attempt seen; `unchanged` is one more condition, or empty.
std::string ClaimText(const TableName& table, const std::string& ids, std::uint64_t claimer,
                      std::uint32_t attempt, const std::string& unchanged = "");
// FROM … WHERE of the rows that run under this incarnation with this attempt.
std::string RunningRows(const TableName& table, const std::string& ids, std::uint64_t claimer,
                        std::uint32_t attempt);

}  // namespace millrace::engine::mysql
