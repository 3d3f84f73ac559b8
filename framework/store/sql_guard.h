// What a handler may not send through its context. Pure.
#pragma once

#include <string_view>

#include "framework/base/result.h"

namespace millrace::engine {

// A handler's SQL runs in its task's transaction, which the engine alone begins and ends. Invalid, with the
// reason and the remedy, for a text that would end it (transaction control, DDL, LOCK TABLES, XA, account and
// server statements: all of them commit), that changes the session (SET of anything but a @user variable,
// USE, a call of GET_LOCK), that is more than one statement, or that does not begin as a statement that can
// be checked. Allowed are SELECT, INSERT, UPDATE, DELETE, REPLACE, WITH, VALUES, TABLE, CALL, DO, SET
// @variable, SHOW, EXPLAIN, DESCRIBE. Comments are read through; a text with one that some servers execute
// (`/*! … */`, `/*M! … */`) is refused. What a CALLed procedure does can't be seen from here: the savepoint
// catches it.
Status GuardSql(std::string_view sql);

// True where one of our servers could read `word` (in capitals) as a word of SQL: outside of strings, quoted
// names and comments. A longer word that ends so counts too, since a number ends where letters begin
// (`1.5INTO`). For a text that GuardSql has allowed: no comment of it is executed.
bool MayHoldWord(std::string_view sql, std::string_view word);

}  // namespace millrace::engine
