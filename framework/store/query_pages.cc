#include "framework/store/query_pages.h"

#include <algorithm>
#include <cassert>
#include <nlohmann/json.hpp>

#include "framework/base/escape.h"
#include "framework/base/suggest.h"
#include "framework/base/utf8.h"

namespace millrace::engine {
namespace {

constexpr std::pair<SqlKind, const char*> kPlaceKinds[] = {
    {SqlKind::Exact, "exact"}, {SqlKind::Text, "text"}, {SqlKind::Bytes, "bytes"},
    {SqlKind::Date, "date"},   {SqlKind::Time, "time"}, {SqlKind::Span, "span"}};

std::string ToHex(std::string_view bytes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string hex;
  for (const unsigned char byte : bytes) (hex += kDigits[byte >> 4]) += kDigits[byte & 15];
  return hex;
}

std::optional<std::string> OfHex(std::string_view hex) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
  };
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    if (digit(hex[i]) < 0 || digit(hex[i + 1]) < 0) return std::nullopt;
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  }
  return hex.size() % 2 == 0 ? std::optional(bytes) : std::nullopt;
}

// Both kinds of database take it, and a back tick within.
std::string QuoteName(const std::string& name) {
  std::string quoted = "`";
  for (const char c : name) quoted += c == '`' ? std::string("``") : std::string(1, c);
  return quoted + '`';
}

// -12.50: what may stand in a statement as it is.
bool IsExactNumber(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  const bool digits =
      std::all_of(text.begin(), text.end(), [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return digits && !text.empty() && text.front() != '.' && text.back() != '.' &&
         std::count(text.begin(), text.end(), '.') <= 1;
}

// A value in the condition. Numbers and bytes are literals: a bound text would be compared with a number as a
// floating-point one, where 9007199254740993 is 9007199254740992. A text is bound, and compared by the
// column's collation; times are what they were, whatever the column is made of.
std::string Literal(const QueryPlace::Value& value, std::vector<SqlValue>& values) {
  if (value.kind == SqlKind::Exact) return value.text;
  if (value.kind == SqlKind::Bytes) return "X'" + ToHex(value.text) + "'";
  values.emplace_back(value.text);
  if (value.kind == SqlKind::Date) return "CAST(? AS DATE)";
  if (value.kind == SqlKind::Time) return "CAST(? AS DATETIME(6))";
  if (value.kind == SqlKind::Span) return "CAST(CAST(? AS CHAR) AS TIME(6))";  // MySQL: ? alone is a moment
  return "?";
}

// c1>p1 OR (c1=p1 AND c2>=p2): the form that both kinds of server read by an index. The last is `>=`, since
// rows that only differ in what a collation ignores stand side by side, and a page may end between them.
std::string Behind(const QueryPlace& place, const std::vector<std::string>& keys,
                   std::vector<SqlValue>& values) {
  std::string condition;
  for (std::size_t last = 0; last < keys.size(); ++last) {
    condition += last == 0 ? "(" : " OR (";
    for (std::size_t i = 0; i < last; ++i)
      condition += QuoteName(keys[i]) + "=" + Literal(place.values[i], values) + " AND ";
    condition += QuoteName(keys[last]) + (last + 1 == keys.size() ? ">=" : ">") +
                 Literal(place.values[last], values) + ")";
  }
  return condition;
}

std::string JoinNames(const std::vector<std::string>& names, const std::string& between,
                      const std::string& behind = "") {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : between) + QuoteName(name) + behind;
  return all;
}

// Without what may stand at the end of a statement, and not within one.
std::string WithoutEnd(std::string query) {
  query.erase(query.find_last_not_of("; \t\r\n") + 1);
  return query;
}

Failure RefuseKeyColumn(const std::string& column, const std::string& what) {
  return Fail(ErrorCode::Invalid, "the key column '" + Escape(Excerpt(column)) + "' " + what);
}

}  // namespace

std::string ToText(const QueryPlace& place) {
  nlohmann::json all = nlohmann::json::array();
  for (const auto& [kind, text] : place.values) {
    const auto word = std::find_if(std::begin(kPlaceKinds), std::end(kPlaceKinds),
                                   [kind = kind](const auto& known) { return known.first == kind; });
    assert(word != std::end(kPlaceKinds));
    const bool hex = kind == SqlKind::Bytes || !IsUtf8(text);
    all.push_back(hex ? nlohmann::json{word->second, ToHex(text), "hex"}
                      : nlohmann::json{word->second, text});
  }
  return all.dump();
}

Result<QueryPlace> ParsePlace(std::string_view text) {
  const auto refused = [&] {
    return Fail(ErrorCode::Invalid, "'" + Escape(Excerpt(text)) + "' is no place in a query");
  };
  const auto all = nlohmann::json::parse(text.begin(), text.end(), nullptr, false);
  if (!all.is_array() || all.empty()) return refused();
  QueryPlace place;
  for (const auto& one : all) {
    const bool hex = one.is_array() && one.size() == 3;
    if (!one.is_array() || one.size() < 2 || one.size() > 3 ||
        !std::all_of(one.begin(), one.end(), [](const auto& part) { return part.is_string(); }))
      return refused();
    const auto word = std::find_if(std::begin(kPlaceKinds), std::end(kPlaceKinds), [&](const auto& known) {
      return known.second == one[0].template get<std::string>();
    });
    const std::string written = one[1].get<std::string>();
    const auto bytes = hex ? OfHex(written) : std::optional(written);
    if (word == std::end(kPlaceKinds) || !bytes || (word->first == SqlKind::Exact && !IsExactNumber(*bytes)))
      return refused();
    place.values.push_back({word->first, *bytes});
  }
  return place;
}

QueryPages::QueryPages(std::unique_ptr<TaskTransaction> transaction, std::string query,
                       std::vector<std::string> keys, std::size_t limit, std::optional<QueryPlace> after)
    : transaction_(std::move(transaction)),
      query_(WithoutEnd(std::move(query))),
      keys_(std::move(keys)),
      limit_(limit),
      place_(std::move(after)) {
  if (!place_) previous_.emplace();
}

// On lines of its own, since the query may end in a comment.
std::string QueryPages::From() const { return "SELECT * FROM (\n" + query_ + "\n) AS millrace_query"; }

Result<SqlResult> QueryPages::Read(const std::string& sql, const std::vector<SqlValue>& values) {
  auto answer = transaction_->Execute(sql, values);
  transaction_->Rollback();
  return answer;
}

Result<std::vector<std::string>> QueryPages::Columns() {
  BOOST_OUTCOME_TRY(answer, Read(From() + " LIMIT 0", {}));
  return std::move(answer.columns);
}

Status QueryPages::FindKeys(const std::vector<std::string>& columns) {
  if (!indices_.empty()) return {};
  std::vector<std::size_t> indices;
  for (const std::string& key : keys_) {
    const auto found = std::find(columns.begin(), columns.end(), key);
    if (found == columns.end()) {
      const std::string hint = DidYouMean(key, columns);
      std::string all;
      for (std::size_t i = 0; i < std::min<std::size_t>(columns.size(), 20); ++i)
        all += (i == 0 ? "" : ", ") + Escape(Excerpt(columns[i]));
      return Fail(ErrorCode::Invalid, "the query gives no column '" + Escape(Excerpt(key)) + "'" +
                                          (hint.empty() ? "; its columns are " + all : hint));
    }
    indices.push_back(static_cast<std::size_t>(found - columns.begin()));
  }
  indices_ = std::move(indices);
  return {};
}

Result<std::vector<SqlCells>> QueryPages::WithoutKey(std::size_t limit) {
  BOOST_OUTCOME_TRY(answer, Read(From() + " WHERE " + JoinNames(keys_, " OR ", " IS NULL") + " LIMIT " +
                                     std::to_string(limit),
                                 {}));
  return std::move(answer.rows);
}

Result<QueryPlace> QueryPages::PlaceOf(const SqlResult& page) const {
  QueryPlace place;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const SqlKind kind = page.last_row[indices_[i]];
    const std::string text = page.rows.back()[indices_[i]].value_or("");
    if (kind == SqlKind::Real) {
      return RefuseKeyColumn(keys_[i],
                             "is a floating-point number, which no text tells exactly: give it as "
                             "CAST(… AS DECIMAL(30,10)) or as a text");
    }
    if (kind == SqlKind::Other) {
      return RefuseKeyColumn(keys_[i],
                             "is of a type whose order is not that of its values (ENUM, SET, BIT, JSON): "
                             "give it as CAST(… AS CHAR)");
    }
    if (kind == SqlKind::Exact && !IsExactNumber(text))
      return RefuseKeyColumn(keys_[i], "has '" + Escape(Excerpt(text)) + "' as a number");
    if ((kind == SqlKind::Date || kind == SqlKind::Time) && text.starts_with("0000-"))
      return RefuseKeyColumn(keys_[i], "has the date " + Escape(Excerpt(text)) + ", which is none");
    place.values.push_back({kind, text});
  }
  return place;
}

bool QueryPages::StandsAtPlace(const SqlCells& row) const {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (row[indices_[i]] != place_->values[i].text) return false;
  }
  return true;
}

// Those that the page before had, too.
void QueryPages::LeaveOutKnown(SqlResult& page) {
  std::multiset<SqlCells> whole(page.rows.begin(), page.rows.end());
  std::erase_if(page.rows, [this](const SqlCells& row) {
    if (!previous_) return StandsAtPlace(row);
    const auto known = previous_->find(row);
    if (known == previous_->end()) return false;
    previous_->erase(known);
    return true;
  });
  previous_ = std::move(whole);
}

Result<SqlResult> QueryPages::Next() {
  std::vector<SqlValue> values;
  std::string sql = From() + " WHERE " + JoinNames(keys_, " AND ", " IS NOT NULL");
  if (place_) sql += " AND (" + Behind(*place_, keys_, values) + ")";
  sql += " ORDER BY " + JoinNames(keys_, ",") + " LIMIT " + std::to_string(limit_);
  auto read = Read(sql, values);
  if (!read) {
    const ErrorCode code = read.error().code;  // of these the same would become of the next statement
    if (code == ErrorCode::Unavailable || code == ErrorCode::Cancelled) return Fail(read.error());
    // Of a column that is not there each server has words of its own.
    if (const auto columns = Columns()) {
      BOOST_OUTCOME_TRYV(FindKeys(*columns));
    }
    return Fail(read.error());
  }
  SqlResult page = std::move(*read);
  BOOST_OUTCOME_TRYV(FindKeys(page.columns));
  const bool full = page.rows.size() >= limit_;
  if (page.rows.empty()) {
    ended_ = true;
    return page;
  }
  BOOST_OUTCOME_TRY(last, PlaceOf(page));
  const bool stands = full && place_ && last == *place_;
  if (!stands) LeaveOutKnown(page);
  if (stands || (full && page.rows.empty())) {
    return Fail(ErrorCode::Invalid, "more than " + std::to_string(limit_ - 1) + " rows have the key '" +
                                        Escape(Excerpt(last.values[0].text)) +
                                        "': take each key once, by GROUP BY or DISTINCT, or name a column "
                                        "that tells the rows apart");
  }
  place_ = std::move(last);
  ended_ = !full;
  return page;
}

}  // namespace millrace::engine
