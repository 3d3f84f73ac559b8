// What differs between the databases in a statement that is otherwise the same on all of them. The text says
// `$word` or `$word(argument)` there. Pure.
#pragma once

#include <string>
#include <string_view>

namespace millrace::engine::sql {

// What stands for each word; `@` for its argument.
struct Dialect {
  const char* now;      // the database's clock
  const char* after;    // $after(?): the time that lies so many microseconds after now; may be negative
  const char* primary;  // behind a table's name: search by primary key, whatever the server's figures say
  const char* lock;     // at the end of a SELECT: its rows are locked until the transaction ends
  const char* free;     // the same, without those that somebody has locked
  const char* upsert;   // at the end of an INSERT: what to set where the row is there already
  const char* brought;  // $brought(column): behind $upsert, what the INSERT would have put there
  const char* tuples;   // in `(a,b) IN ($tuples (?,?),(?,?))`
  const char* remove;   // $remove(table): DELETE, searched by primary key; WHERE follows
};

std::string Expand(const Dialect& dialect, std::string_view text);

}  // namespace millrace::engine::sql
