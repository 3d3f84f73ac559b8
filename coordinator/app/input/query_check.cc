#include "coordinator/app/input/query_check.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "coordinator/app/cli/text.h"
#include "framework/plugin/sql_guard.h"
#include "framework/store/task_transaction.h"

namespace millrace::engine {
namespace {

std::string FirstWord(std::string_view sql) {
  sql.remove_prefix(std::min(sql.find_first_not_of(" \t\r\n("), sql.size()));
  std::string word;
  for (const char c : sql) {
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) break;
    word += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return word;
}

// Both stores say so in these words.
bool TooManyRows(const Error& error) {
  return error.message.find("more than " + std::to_string(kMaxSqlRows) + " rows") != std::string::npos;
}

}  // namespace

Status CheckQuery(std::string_view sql) {
  const std::string verb = FirstWord(sql);
  if (verb != "SELECT" && verb != "WITH" && verb != "VALUES") {
    return Fail(
        ErrorCode::Invalid,
        "--from-query: the statement must begin with SELECT, WITH or VALUES, since it is there to read" +
            (verb.empty() ? std::string() : ", not with " + verb.substr(0, 40)));
  }
  if (auto guarded = GuardSql(sql); !guarded) {
    return Fail(guarded.error().code, "--from-query: " + guarded.error().message);
  }
  if (MayHoldWord(sql, "INTO")) {
    return Fail(
        ErrorCode::Invalid,
        "--from-query: the statement holds INTO, which would write a file, a variable or a table; take "
        "it out, or quote the column that is called so");
  }
  return {};
}

Error QueryError(Error error) {
  if (TooManyRows(error)) {
    error.message =
        "the query gives more than " + WithCommas(kMaxSqlRows) +
        " rows, and nothing was added: split it by a WHERE on its key, such as id <= 100000 and then id > "
        "100000; with --key-column the parts may overlap";
  }
  error.message = "--from-query: " + error.message;
  return error;
}

}  // namespace millrace::engine
