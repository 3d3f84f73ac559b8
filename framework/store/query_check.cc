#include "framework/store/query_check.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "framework/store/sql_guard.h"

namespace millrace::engine {
namespace {

std::string LeadingWord(std::string_view sql) {
  sql.remove_prefix(std::min(sql.find_first_not_of(" \t\r\n("), sql.size()));
  std::string word;
  for (const char c : sql) {
    if (std::isalpha(static_cast<unsigned char>(c)) == 0) break;
    word += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return word;
}

}  // namespace

Status CheckQuery(std::string_view sql) {
  const std::string verb = LeadingWord(sql);
  if (verb != "SELECT" && verb != "WITH" && verb != "VALUES") {
    return Fail(ErrorCode::Invalid,
                "the statement must begin with SELECT, WITH or VALUES, since it is there to read" +
                    (verb.empty() ? std::string() : ", not with " + verb.substr(0, 40)));
  }
  BOOST_OUTCOME_TRYV(GuardSql(sql));
  if (MayHoldWord(sql, "INTO")) {
    return Fail(ErrorCode::Invalid,
                "the statement holds INTO, which would write a file, a variable or a table; take "
                "it out, or quote the column that is called so");
  }
  return {};
}

}  // namespace millrace::engine
