#include "framework/store/sql_guard.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace millrace::engine {
namespace {

// The two ways in which our servers read strings and comments. A text must be harmless in both.
enum class Dialect { Mysql, Sqlite };

constexpr std::array<std::string_view, 15> kAllowed = {"SELECT", "INSERT", "UPDATE",  "DELETE",   "REPLACE",
                                                       "WITH",   "VALUES", "TABLE",   "CALL",     "DO",
                                                       "SET",    "SHOW",   "EXPLAIN", "DESCRIBE", "DESC"};
constexpr std::array<std::string_view, 10> kTransactionControl = {
    "BEGIN", "START", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "END", "XA", "LOCK", "UNLOCK"};
constexpr std::array<std::string_view, 16> kDdl = {
    "CREATE", "ALTER",    "DROP",   "TRUNCATE", "RENAME",  "GRANT",     "REVOKE", "ANALYZE",
    "CHECK",  "OPTIMIZE", "REPAIR", "FLUSH",    "INSTALL", "UNINSTALL", "VACUUM", "REINDEX"};

bool IsSpace(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }
bool IsWord(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

template <std::size_t N>
bool Contains(const std::array<std::string_view, N>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Where the quoted text or identifier that begins at `at` ends (the place behind it).
std::size_t SkipQuoted(std::string_view sql, std::size_t at, Dialect dialect) {
  const char open = sql[at];
  const char close = open == '[' ? ']' : open;
  const bool escapes = dialect == Dialect::Mysql && (open == '\'' || open == '"');
  for (++at; at < sql.size(); ++at) {
    if (escapes && sql[at] == '\\') {
      ++at;
    } else if (sql[at] == close) {
      return at + 1;  // a doubled quote reads as two texts beside each other: the same for our purpose
    }
  }
  return sql.size();
}

std::size_t SkipLine(std::string_view sql, std::size_t at) {
  const std::size_t end = sql.find('\n', at);
  return end == std::string_view::npos ? sql.size() : end + 1;
}

bool BeginsLineComment(std::string_view rest, Dialect dialect, bool at_start) {
  if (rest[0] == '#') return dialect == Dialect::Mysql || at_start;
  if (!rest.starts_with("--")) return false;
  // MySQL wants a space behind `--`; before the statement nothing else could be meant.
  return dialect == Dialect::Sqlite || at_start || rest.size() == 2 ||
         static_cast<unsigned char>(rest[2]) <= ' ';
}

// The text with comments as spaces and the content of quotes dropped; a quote stands as `'`.
std::string Bare(std::string_view sql, Dialect dialect) {
  std::string out;
  bool at_start = true;
  for (std::size_t i = 0; i < sql.size();) {
    const std::string_view rest = sql.substr(i);
    const char c = sql[i];
    if (BeginsLineComment(rest, dialect, at_start)) {
      i = SkipLine(sql, i);
      out += ' ';
    } else if (rest.starts_with("/*")) {
      const std::size_t end = sql.find("*/", i + 2);
      i = end == std::string_view::npos ? sql.size() : end + 2;
      out += ' ';
    } else if (c == '\'' || c == '"' || c == '`' || (c == '[' && dialect == Dialect::Sqlite)) {
      i = SkipQuoted(sql, i, dialect);
      out += '\'';
      at_start = false;
    } else {
      if (!IsSpace(c) && c != '(') at_start = false;
      out += c;
      ++i;
    }
  }
  return out;
}

// True where a server might execute what stands in a comment. Which one does depends on its version, so that
// such a text can't be judged.
bool HoldsExecutableComment(std::string_view sql, Dialect dialect) {
  for (std::size_t i = 0; i < sql.size();) {
    const std::string_view rest = sql.substr(i);
    if (rest.starts_with("/*!") || rest.starts_with("/*M!") || rest.starts_with("/*m!")) return true;
    if (BeginsLineComment(rest, dialect, false)) {
      i = SkipLine(sql, i);
    } else if (rest.starts_with("/*")) {
      const std::size_t end = sql.find("*/", i + 2);
      i = end == std::string_view::npos ? sql.size() : end + 2;
    } else if (sql[i] == '\'' || sql[i] == '"' || sql[i] == '`') {
      i = SkipQuoted(sql, i, dialect);
    } else {
      ++i;
    }
  }
  return false;
}

std::string FirstWord(std::string_view bare, std::size_t& after) {
  std::size_t i = 0;
  while (i < bare.size() && (IsSpace(bare[i]) || bare[i] == '(')) ++i;
  std::string word;
  for (; i < bare.size() && IsWord(bare[i]); ++i) {
    word += static_cast<char>(std::toupper(static_cast<unsigned char>(bare[i])));
  }
  after = i;
  return word;
}

bool SameLetter(char c, char capital) { return std::toupper(static_cast<unsigned char>(c)) == capital; }

bool BareHoldsWord(std::string_view bare, std::string_view word) {
  for (auto at = bare.begin();; ++at) {
    at = std::search(at, bare.end(), word.begin(), word.end(), SameLetter);
    if (at == bare.end()) return false;
    const auto after = at + static_cast<std::ptrdiff_t>(word.size());
    if (after == bare.end() || !IsWord(*after)) return true;
  }
}

// GET_LOCK as a function that is called.
bool TakesSessionLock(std::string_view bare) {
  constexpr std::string_view kName = "GET_LOCK";
  for (auto at = bare.begin();; ++at) {
    at = std::search(at, bare.end(), kName.begin(), kName.end(), SameLetter);
    if (at == bare.end()) return false;
    if (at != bare.begin() && IsWord(at[-1])) continue;
    const auto after = std::find_if_not(at + kName.size(), bare.end(), IsSpace);
    if (after != bare.end() && *after == '(') return true;
  }
}

bool HoldsSecondStatement(std::string_view bare) {
  const std::size_t end = bare.find(';');
  if (end == std::string_view::npos) return false;
  return std::any_of(bare.begin() + static_cast<std::ptrdiff_t>(end), bare.end(),
                     [](char c) { return c != ';' && !IsSpace(c); });
}

// True if every assignment of a SET is to a @variable.
bool SetsVariablesAlone(std::string_view assignments) {
  int depth = 0;
  bool at_target = true;
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    const char c = assignments[i];
    if (at_target && !IsSpace(c)) {
      if (c != '@' || i + 1 >= assignments.size() || assignments[i + 1] == '@') return false;
      at_target = false;
    }
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == ',' && depth <= 0) at_target = true;
  }
  return !at_target;
}

Status Refuse(std::string reason) {
  return Fail(ErrorCode::Invalid, "refused before it was sent: " + std::move(reason));
}

Status GuardVerb(const std::string& verb, std::string_view rest) {
  if (verb.empty()) return Refuse("the SQL text does not begin with a statement such as SELECT or UPDATE");
  if (verb == "SET" && !SetsVariablesAlone(rest)) {
    return Refuse(
        "SET of anything but a @variable would change the engine's session; leave settings to the engine");
  }
  if (Contains(kAllowed, verb)) return {};
  if (Contains(kTransactionControl, verb)) {
    return Refuse(verb +
                  " would end or change the task's transaction, which commits with the task's outcome; "
                  "return done to commit it, retry or fail to roll it back");
  }
  if (Contains(kDdl, verb)) {
    return Refuse(verb + " commits the task's transaction on its own; change the schema outside of handlers");
  }
  return Refuse(verb.substr(0, 40) +
                " is not among the statements that a handler may send (SELECT, INSERT, UPDATE, "
                "DELETE, REPLACE, WITH, VALUES, CALL, DO, SET @variable, SHOW, EXPLAIN)");
}

}  // namespace

Status GuardSql(std::string_view sql) {
  if (sql.find('\0') != std::string_view::npos)
    return Refuse("the SQL text holds a NUL byte; pass values as `?`");
  for (const Dialect dialect : {Dialect::Mysql, Dialect::Sqlite}) {
    if (HoldsExecutableComment(sql, dialect)) {
      return Refuse("it holds a comment that some servers execute (/*! … */); write the SQL plainly");
    }
    const std::string bare = Bare(sql, dialect);
    std::size_t after = 0;
    const std::string verb = FirstWord(bare, after);
    BOOST_OUTCOME_TRYV(GuardVerb(verb, std::string_view(bare).substr(after)));
    if (HoldsSecondStatement(bare)) return Refuse("it holds more than one statement; send them one by one");
    if (TakesSessionLock(bare)) {
      return Refuse(
          "no rollback frees what GET_LOCK has locked, and others use its connection next; lock a row, by "
          "SELECT … FOR UPDATE");
    }
  }
  return {};
}

bool MayHoldWord(std::string_view sql, std::string_view word) {
  return BareHoldsWord(Bare(sql, Dialect::Mysql), word) || BareHoldsWord(Bare(sql, Dialect::Sqlite), word);
}

}  // namespace millrace::engine
