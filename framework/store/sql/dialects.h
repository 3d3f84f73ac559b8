// What the databases call the words of a Dialect; see connection.h.
#pragma once

#include "framework/store/sql/connection.h"

namespace millrace::engine::sql {

inline constexpr Dialect kMysqlDialect = {
    .now = "UTC_TIMESTAMP(6)",
    .after = "UTC_TIMESTAMP(6) + INTERVAL @ MICROSECOND",
    .primary = " FORCE INDEX (PRIMARY)",
    .lock = " FOR UPDATE",
    .share = " LOCK IN SHARE MODE",
    .free = " FOR UPDATE SKIP LOCKED",
    .upsert = " ON DUPLICATE KEY UPDATE",
    .brought = "VALUES(@)",
    .enter = "INSERT IGNORE",
    .tuples = "",
    .end = "",
    .tables =
        "(SELECT TABLE_NAME AS name FROM information_schema.TABLES WHERE TABLE_SCHEMA=DATABASE()) AS known",
    .same = "<=>",
    .due = " FORCE INDEX (due)",
    .held = " FORCE INDEX (due)",
    .remove = "DELETE @ FROM @ FORCE INDEX (PRIMARY)",
    .inserted = "SELECT LAST_INSERT_ID(),@@auto_increment_increment",
    .insert_rows = kMaxBatchRows};

// On a connection that knows no functions of ours: to the millisecond.
inline constexpr Dialect kSqliteDialect = {
    .now = "(strftime('%Y-%m-%d %H:%M:%f','now')||'000')",
    .after = "(strftime('%Y-%m-%d %H:%M:%f','now',((@)/1000000.0)||' seconds')||'000')",
    .primary = "",
    .lock = "",
    .share = "",
    .free = "",
    .upsert = " ON CONFLICT DO UPDATE SET",
    .brought = "excluded.@",
    .enter = "INSERT OR IGNORE",
    // A list of values alone is searched by scanning the table for it.
    .tuples = "SELECT * FROM (VALUES",
    .end = ")",
    .tables = "sqlite_master",
    .same = "IS",
    .due = " INDEXED BY @_due",
    .held = " INDEXED BY @_held",
    .remove = "DELETE FROM @",
    .inserted = "SELECT last_insert_rowid(),1",
    // One text, which stays prepared, and an error that says whose row it is.
    .insert_rows = 1};

}  // namespace millrace::engine::sql
