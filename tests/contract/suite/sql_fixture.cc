#include <cstdio>

#include "tests/contract/suite/store_fixture.h"

namespace millrace::engine {
namespace {

std::string Quote(const std::string& text) {
  std::string quoted = "'";
  for (char c : text) {
    if (c == '\'') quoted += '\'';
    quoted += c;
  }
  return quoted + "'";
}

std::string InsertText(const TableName& table, const PlainRow& row) {
  std::string columns = "handler, params";
  std::string values = Quote(row.handler) + ", " + Quote(row.params);
  const auto add = [&](const char* column, const std::string& value) {
    columns += std::string(", ") + column;
    values += ", " + value;
  };
  if (row.slice) add("slice", std::to_string(*row.slice));
  if (row.state) add("state", std::to_string(*row.state));
  if (row.priority) add("priority", std::to_string(*row.priority));
  if (row.run_at) add("run_at", SqlTime(*row.run_at));
  if (row.biz_key) add("biz_key", Quote(*row.biz_key));
  if (row.batch) add("batch", Quote(*row.batch));
  if (row.attempt) add("attempt", std::to_string(*row.attempt));
  if (row.failures) add("failures", std::to_string(*row.failures));
  return "INSERT INTO " + table + " (" + columns + ") VALUES (" + values + ")";
}

Result<std::uint64_t> InsertBy(SqlClient& client, const std::string& insert, const std::string& last_id) {
  BOOST_OUTCOME_TRYV(client.Run(insert));
  BOOST_OUTCOME_TRY(id, client.Run("SELECT " + last_id));
  return std::stoull(id.rows.at(0).at(0).value());
}

class OpenInsert final : public StoreFixture::LateRow {
 public:
  OpenInsert(std::unique_ptr<SqlClient> client, std::uint64_t id) : client_(std::move(client)), id_(id) {}
  std::uint64_t id() const override { return id_; }
  Status Commit() override {
    BOOST_OUTCOME_TRYV(client_->Run("COMMIT"));
    return {};
  }

 private:
  std::unique_ptr<SqlClient> client_;
  std::uint64_t id_;
};

}  // namespace

std::string SqlTime(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss of_day(time - day);
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, "'%04d-%02u-%02u %02d:%02d:%02d.%06d'", static_cast<int>(date.year()),
                static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                static_cast<int>(of_day.hours().count()), static_cast<int>(of_day.minutes().count()),
                static_cast<int>(of_day.seconds().count()), static_cast<int>(of_day.subseconds().count()));
  return buffer;
}

SqlClient& SqlFixture::Client() {
  if (!client_) client_ = NewClient();
  return *client_;
}

Result<std::uint64_t> SqlFixture::Insert(const TableName& table, const PlainRow& row) {
  return InsertBy(Client(), InsertText(table, row), LastId());
}

Status SqlFixture::Remove(const TableName& table, std::uint64_t id) {
  for (const char* pool : {"", "_done", "_failed"}) {
    BOOST_OUTCOME_TRYV(Client().Run("DELETE FROM " + table + pool + " WHERE id=" + std::to_string(id)));
  }
  return {};
}

Status SqlFixture::ExpireKeys() {
  BOOST_OUTCOME_TRYV(Client().Run(
      "UPDATE tasks_keys SET keep_until='2001-01-01 00:00:00.000000' WHERE keep_until IS NOT NULL"));
  return {};
}

Status SqlFixture::DeleteBeat(const std::string& incarnation) {
  BOOST_OUTCOME_TRYV(Client().Run("DELETE FROM millrace_beats WHERE id=" + Quote(incarnation)));
  return {};
}

std::unique_ptr<StoreFixture::LateRow> SqlFixture::InsertLate(const TableName& table, const PlainRow& row) {
  auto client = NewClient();
  if (!client->Run("BEGIN")) return nullptr;
  auto id = InsertBy(*client, InsertText(table, row), LastId());
  if (!id) return nullptr;
  return std::make_unique<OpenInsert>(std::move(client), *id);
}

Result<std::string> SqlFixture::Ask(const std::string& sql) {
  BOOST_OUTCOME_TRY(answer, Client().Run(sql));
  if (answer.rows.empty()) return std::string();
  return answer.rows[0].at(0).value_or("");
}

}  // namespace millrace::engine
