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

bool MentionsTable(std::string_view sql, const TableName& table) {
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  const std::string text = lower(std::string(sql));
  for (const std::string& name : {std::string(table.text()), table + "_all"}) {
    for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
      const std::size_t end = at + name.size();
      if ((at == 0 || !is_word(text[at - 1])) && (end == text.size() || !is_word(text[end]))) return true;
    }
  }
  return false;
}

Status CheckFills(std::string_view sql, const TableName& table) {
  if (!MentionsTable(sql, table)) return {};
  return Fail(ErrorCode::Invalid, "the query reads " + std::string(table.text()) +
                                      ", the table that it fills, and would go on for ever: let the "
                                      "schedule's tasks go to another (\"table\")");
}

}  // namespace millrace::engine
