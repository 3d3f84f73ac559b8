// Whether SQLite carries out a statement as it was meant: every step a search, by the columns named.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/store/sqlite/session.h"

namespace millrace::engine::sqlite {

struct HotStatement {
  std::string name;
  std::string sql;
  std::size_t values = 0;
  // The columns by which it must search, as SQLite's plan names them: "slice=? AND handler>?".
  std::string bounds;
};

// What is wrong with the statement's plan; nullopt: nothing. A search that leaves out one of the columns
// reads rows only to throw them away, which nothing but the plan shows.
std::optional<std::string> PlanFault(Session& db, const HotStatement& hot);

}  // namespace millrace::engine::sqlite
