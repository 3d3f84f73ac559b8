#include "framework/store/mysql/statement_effects.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace millrace::engine::mysql {
namespace {

constexpr std::array<std::string_view, 7> kOnRows = {"SELECT",  "INSERT", "UPDATE", "DELETE",
                                                     "REPLACE", "WITH",   "VALUES"};

// The servers' counters of statements that end no transaction, or end it by a rollback.
constexpr std::array<std::string_view, 23> kNoCommit = {"Com_select",
                                                        "Com_insert",
                                                        "Com_insert_select",
                                                        "Com_update",
                                                        "Com_update_multi",
                                                        "Com_delete",
                                                        "Com_delete_multi",
                                                        "Com_replace",
                                                        "Com_replace_select",
                                                        "Com_call_procedure",
                                                        "Com_do",
                                                        "Com_signal",
                                                        "Com_resignal",
                                                        "Com_get_diagnostics",
                                                        "Com_savepoint",
                                                        "Com_release_savepoint",
                                                        "Com_rollback_to_savepoint",
                                                        "Com_rollback",
                                                        "Com_show_status",
                                                        "Com_prepare_sql",
                                                        "Com_execute_sql",
                                                        "Com_execute_immediate",
                                                        "Com_dealloc_sql"};

bool MayCommit(std::string_view counter) {
  return !counter.starts_with("Com_stmt_") &&
         std::find(kNoCommit.begin(), kNoCommit.end(), counter) == kNoCommit.end();
}

}  // namespace

bool MayEndTransaction(std::string_view sql) {
  const auto begin = std::find_if(sql.begin(), sql.end(), [](unsigned char c) { return c > ' '; });
  std::string word;
  for (auto c = begin; c != sql.end() && std::isalpha(static_cast<unsigned char>(*c)) != 0; ++c) {
    word += static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  }
  return std::find(kOnRows.begin(), kOnRows.end(), word) == kOnRows.end();
}

Result<std::uint64_t> CountCommits(Session& session) {
  std::uint64_t count = 0;
  BOOST_OUTCOME_TRYV(session.Query("SHOW SESSION STATUS LIKE 'Com\\_%'", [&](const Row& row) {
    if (MayCommit(row.Text(1))) count += row.Number(2);
  }));
  return count;
}

}  // namespace millrace::engine::mysql
