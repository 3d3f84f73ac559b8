// The due map by a loose index scan, one seek for each due group, whatever the number of rows; and the scan
// of one group. The texts are the schema check's, too.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/store/due_scope.h"
#include "framework/store/sqlite/session.h"

namespace millrace::engine::sqlite {

// The statements of the walk.
std::string FirstGroupSql(const TableName& table);
std::string NextUrgencySql(const TableName& table);
std::string NextHandlerSql(const TableName& table);

// The first row of a group that is due after a time. Values: slice, handler, urgency, time.
std::string DueAfterSql(const TableName& table);
// The first kMostNewRows rows with a greater id, by their groups: of those that wait the first due time,
// whether one is due later, how many are due now; and the greatest id. Values: now, now, id.
std::string NewRowsSql(const TableName& table);

// What a scan reads of a row beside what it always does.
struct ScanColumns {
  bool bytes = false;    // ScanRow::bytes
  bool created = false;  // ScanRow::created_at
};

// The scan's two statements: a row value `(run_at, id) > (?, ?)` would bound run_at
// alone, and read a tie from its beginning for every page of it.
// Values: slice, handler, urgency, run_at after, now, limit.
std::string ScanSql(const TableName& table, ScanColumns columns = {});
// Values: slice, handler, urgency, run_at, id after, limit.
std::string ScanTieSql(const TableName& table, ScanColumns columns = {});

// Appends the groups of one table, in order. Inside a read transaction where several tables must agree.
Status ReadDueGroups(Session& db, const DueScope& scope, std::vector<DueGroup>& groups);

}  // namespace millrace::engine::sqlite
