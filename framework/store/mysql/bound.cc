// The statements of handlers: prepared by the server, with whatever they answer.
#include <cppconn/connection.h>
#include <cppconn/datatype.h>
#include <cppconn/exception.h>
#include <cppconn/parameter_metadata.h>
#include <cppconn/prepared_statement.h>
#include <cppconn/resultset.h>
#include <cppconn/resultset_metadata.h>

#include <algorithm>
#include <cctype>

#include "framework/store/mysql/session.h"
#include "framework/store/sql/text.h"

namespace millrace::engine::mysql {
namespace {

// Results that nobody asked for would leave the connection out of step.
template <class AnyStatement>
void Drain(AnyStatement& statement) {
  while (statement.getMoreResults()) std::unique_ptr<::sql::ResultSet>(statement.getResultSet());
}

void Bind(::sql::PreparedStatement& statement, unsigned index, const SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    statement.setInt64(index, *number);
  } else if (const auto* real = std::get_if<double>(&value)) {
    statement.setDouble(index, *real);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    statement.setString(index, ::sql::SQLString(*text));
  } else {
    statement.setNull(index, 0);
  }
}

// The connector can count a bound statement's rows only where it is told beforehand that there is no answer.
bool ChangesOnly(std::string_view sql) {
  std::string text;
  for (const char c : sql) text += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  text.erase(0, text.find_first_not_of(" \t\r\n"));
  if (text.find("RETURNING") != std::string::npos) return false;
  return text.starts_with("INSERT") || text.starts_with("UPDATE") || text.starts_with("DELETE") ||
         text.starts_with("REPLACE");
}

SqlKind KindOf(int type) {
  switch (type) {
    case ::sql::DataType::TINYINT:
    case ::sql::DataType::SMALLINT:
    case ::sql::DataType::MEDIUMINT:
    case ::sql::DataType::INTEGER:
    case ::sql::DataType::BIGINT:
    case ::sql::DataType::YEAR:
    case ::sql::DataType::DECIMAL:
    case ::sql::DataType::NUMERIC:
      return SqlKind::Exact;
    case ::sql::DataType::REAL:
    case ::sql::DataType::DOUBLE:
      return SqlKind::Real;
    case ::sql::DataType::CHAR:
    case ::sql::DataType::VARCHAR:
    case ::sql::DataType::LONGVARCHAR:
      return SqlKind::Text;
    case ::sql::DataType::BINARY:
    case ::sql::DataType::VARBINARY:
    case ::sql::DataType::LONGVARBINARY:
      return SqlKind::Bytes;
    case ::sql::DataType::DATE:
      return SqlKind::Date;
    case ::sql::DataType::TIMESTAMP:
      return SqlKind::Time;
    case ::sql::DataType::TIME:
      return SqlKind::Span;
    default:
      return SqlKind::Other;
  }
}

// False if there are more rows than a handler may read at once.
bool Collect(::sql::ResultSet& from, SqlResult& to) {
  to = {};
  ::sql::ResultSetMetaData* const meta = from.getMetaData();
  const unsigned count = meta->getColumnCount();
  std::vector<SqlKind> kinds;
  for (unsigned i = 1; i <= count; ++i) {
    to.columns.push_back(meta->getColumnLabel(i).asStdString());
    kinds.push_back(KindOf(meta->getColumnType(i)));
  }
  while (from.next()) {
    if (to.rows.size() == kMaxSqlRows) return false;
    auto& row = to.rows.emplace_back();
    for (unsigned i = 1; i <= count; ++i) {
      if (from.isNull(i)) {
        row.emplace_back(std::nullopt);
      } else if (kinds[i - 1] == SqlKind::Real) {  // the connector would write six digits after the point
        row.emplace_back(sql::Shortest(static_cast<double>(from.getDouble(i))));
      } else {
        row.emplace_back(from.getString(i).asStdString());
      }
    }
  }
  if (to.rows.empty()) return true;
  for (unsigned i = 0; i < count; ++i) {
    to.last_row.push_back(to.rows.back()[i] ? kinds[i] : SqlKind::Null);
  }
  return true;
}

}  // namespace

Result<SqlResult> Session::Bound(std::string_view sql, std::span<const SqlValue> values) {
  const Use use(*this);
  BOOST_OUTCOME_TRYV(Usable());
  try {
    SqlResult answer;
    std::unique_ptr<::sql::PreparedStatement> statement(
        Native().prepareStatement(::sql::SQLString(std::string(sql))));
    // Said here, since the connector's own word for it is none of the server's, and would cost the
    // connection.
    const std::size_t wanted = statement->getParameterMetaData()->getParameterCount();
    if (wanted != values.size()) {
      return Fail(ErrorCode::Invalid, where_ + ": the statement has " + std::to_string(wanted) +
                                          " placeholders, and " + std::to_string(values.size()) +
                                          " values were given");
    }
    for (std::size_t i = 0; i < values.size(); ++i) Bind(*statement, static_cast<unsigned>(i + 1), values[i]);
    if (ChangesOnly(sql)) {
      answer.affected = static_cast<std::uint64_t>(statement->executeUpdate());
      return answer;
    }
    bool fits = true;
    const bool has_rows = statement->execute();
    if (has_rows) {
      std::unique_ptr<::sql::ResultSet> rows(statement->getResultSet());
      fits = Collect(*rows, answer);
    }
    Drain(*statement);
    if (fits && !has_rows) {
      BOOST_OUTCOME_TRYV(Query("SELECT ROW_COUNT()", [&](const Row& row) {
        answer.affected = static_cast<std::uint64_t>(std::max<std::int64_t>(0, row.Signed(1)));
      }));
    }
    if (fits) return answer;
    return Fail(ErrorCode::Invalid, where_ + ": the answer has more than " + std::to_string(kMaxSqlRows) +
                                        " rows; read it in pages");
  } catch (const ::sql::SQLException& exception) {
    return Fail(Failed(exception, in_transaction_ ? Purpose::Transaction : Purpose::Write));
  }
}

}  // namespace millrace::engine::mysql
