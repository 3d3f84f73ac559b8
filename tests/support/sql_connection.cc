#include "tests/support/sql_connection.h"
#include "tests/support/die.h"

#include <cppconn/connection.h>
#include <cppconn/exception.h>
#include <cppconn/resultset.h>
#include <cppconn/resultset_metadata.h>
#include <cppconn/statement.h>
#include <mysql_driver.h>

#include <cstdio>
#include <cstdlib>

namespace millrace::engine {
namespace {

SqlResult Collect(sql::ResultSet& from) {
  SqlResult answer;
  const unsigned columns = from.getMetaData()->getColumnCount();
  for (unsigned i = 1; i <= columns; ++i) {
    answer.columns.push_back(from.getMetaData()->getColumnLabel(i).asStdString());
  }
  while (from.next()) {
    auto& row = answer.rows.emplace_back();
    for (unsigned i = 1; i <= columns; ++i) {
      row.emplace_back(from.isNull(i) ? std::nullopt : std::optional(from.getString(i).asStdString()));
    }
  }
  return answer;
}

}  // namespace

SqlConnection::SqlConnection(const StoreUrl& url, const std::string& password_file) {
  std::string password;
  if (!password_file.empty()) password = ReadPasswordFile(password_file).value_or("");
  sql::ConnectOptionsMap options;
  options["hostName"] = sql::SQLString("tcp://" + url.host + ":" + std::to_string(url.port));
  options["userName"] = sql::SQLString(url.user);
  options["password"] = sql::SQLString(password);
  if (!url.database.empty()) options["schema"] = sql::SQLString(url.database);
  options["OPT_CHARSET_NAME"] = sql::SQLString("utf8mb4");
  try {
    static sql::Driver* const driver = sql::mysql::get_driver_instance();
    connection_.reset(driver->connect(options));
  } catch (const sql::SQLException& exception) {
    Die(std::string("can't connect: ") + exception.what());
  }
}

SqlConnection::~SqlConnection() = default;

Result<SqlResult> SqlConnection::Run(const std::string& sql) {
  try {
    std::unique_ptr<sql::Statement> statement(connection_->createStatement());
    SqlResult answer;
    if (statement->execute(sql)) {
      answer = Collect(*std::unique_ptr<sql::ResultSet>(statement->getResultSet()));
    } else {
      answer.affected = statement->getUpdateCount();
    }
    while (statement->getMoreResults()) std::unique_ptr<sql::ResultSet>(statement->getResultSet());
    return answer;
  } catch (const sql::SQLException& exception) {
    const int code = exception.getErrorCode();
    return Fail(code == 1205 || code == 1213 ? ErrorCode::Conflict : ErrorCode::Invalid,
                std::to_string(code) + ": " + exception.what());
  }
}

std::string SqlConnection::Ask(const std::string& sql) {
  auto answer = Run(sql);
  if (!answer) Die(sql + ": " + answer.error().message);
  if (answer->rows.empty()) return {};
  return answer->rows[0].at(0).value_or("");
}

}  // namespace millrace::engine
