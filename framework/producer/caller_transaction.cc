// The store's port over a connection of the caller's.
#include <millrace/producer.h>

#include <charconv>
#include <exception>

#include "framework/base/result.h"
#include "framework/producer/batch.h"
#include "framework/store/sql/dialects.h"
#include "framework/store/sql/operations.h"

namespace millrace::producer {
namespace {

using engine::sql::Value;

SqlValue ToCaller(const Value& value) {
  switch (value.kind) {
    case Value::Kind::Null:
      return nullptr;
    case Value::Kind::Integer:
    case Value::Kind::Unsigned:
      return value.integer;
    case Value::Kind::Text:
    case Value::Kind::Bytes:
      return std::string(value.text);
    case Value::Kind::Real:
      break;  // no statement about tasks has any
  }
  std::terminate();
}

using Cells = std::vector<std::optional<std::string>>;

// A column that the caller's function has left out reads as NULL.
class CallerRow final : public engine::sql::Row {
 public:
  explicit CallerRow(const Cells& cells) : cells_(cells) {}
  std::string Text(unsigned column) const override { return Null(column) ? "" : *cells_[column - 1]; }
  std::uint64_t Number(unsigned column) const override { return Read<std::uint64_t>(column); }
  std::int64_t Signed(unsigned column) const override { return Read<std::int64_t>(column); }
  bool Null(unsigned column) const override { return column > cells_.size() || !cells_[column - 1]; }

 private:
  template <class Number>
  Number Read(unsigned column) const {
    const std::string text = Text(column);
    Number number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
  }

  const Cells& cells_;
};

class CallerConnection final : public engine::sql::Connection {
 public:
  CallerConnection(const engine::sql::Dialect& dialect, const RunSql& run)
      : engine::sql::Connection(dialect), run_(run) {}

  // The transaction is the caller's.
  engine::Status Begin() override { return NotOurs(); }
  engine::Status Commit() override { return NotOurs(); }
  void Rollback() override {}
  engine::sql::Refusal refusal() override { return engine::sql::Refusal::Other; }
  const std::string& where() const override { return where_; }

 private:
  engine::Status RunQuery(const std::string& text, Values values, const OnRow& on_row) override {
    BOOST_OUTCOME_TRY(answer, Send(text, values));
    for (const Cells& cells : answer.rows) on_row(CallerRow(cells));
    return {};
  }
  engine::Result<std::uint64_t> RunWrite(const std::string& text, Values values) override {
    BOOST_OUTCOME_TRY(answer, Send(text, values));
    return answer.affected;
  }

  engine::Result<SqlAnswer> Send(const std::string& text, Values values);
  static engine::Status NotOurs() {
    return engine::Fail(engine::ErrorCode::Internal, "the transaction is the caller's");
  }

  const RunSql& run_;
  const std::string where_ = "the caller's connection";
};

engine::Result<SqlAnswer> CallerConnection::Send(const std::string& text, Values values) {
  std::vector<SqlValue> bound;
  bound.reserve(values.size());
  for (const Value& value : values) bound.push_back(ToCaller(value));
  SqlAnswer answer = run_(text, bound);
  if (answer.error.empty()) return answer;
  return engine::Fail(engine::ErrorCode::Internal, where_ + ": " + answer.error + " (the statement was " +
                                                       engine::Shorten(text, 120) + ")");
}

engine::Result<std::uint32_t> CountSlices(CallerConnection& db, const engine::TableName& table) {
  std::uint64_t slices = 0;
  BOOST_OUTCOME_TRYV(db.Query("SELECT slices FROM millrace_schema WHERE task_table=?", {table},
                              [&](const engine::sql::Row& row) { slices = row.Number(1); }));
  if (slices > 0 && slices <= engine::kMaxSlices) return static_cast<std::uint32_t>(slices);
  return engine::Fail(engine::ErrorCode::Invalid, "the database has no task table '" + std::string(table) +
                                                      "': make it by millrace schema apply, or name another");
}

engine::Result<engine::SubmitReport> Submit(CallerConnection& db, std::span<const NewTask> tasks,
                                            const SubmitOptions& options) {
  BOOST_OUTCOME_TRY(table, ParseTable(options.table, engine::kDefaultTable));
  BOOST_OUTCOME_TRY(placed, ToStore(tasks));
  if (placed.empty()) return engine::SubmitReport{};
  if (ChoosesSlices(tasks, options.slices)) {
    BOOST_OUTCOME_TRY(slices, CountSlices(db, table));
    ChooseSlices(tasks, options.slices, slices, engine::Random::FromSystem(), placed);
  }
  auto report = engine::sql::Submit(db, table, placed);
  if (report || report.error().code == engine::ErrorCode::Invalid) return report;
  engine::Error error = report.error();
  error.message += "; roll the transaction back";
  return engine::Fail(std::move(error));
}

}  // namespace

inline namespace v1 {

Result<Report> SubmitInTransaction(Dialect dialect, const RunSql& run, std::span<const NewTask> tasks,
                                   const SubmitOptions& options) {
  CallerConnection db(dialect == Dialect::Sqlite ? engine::sql::kSqliteDialect : engine::sql::kMysqlDialect,
                      run);
  auto report = Submit(db, tasks, options);
  if (!report) return FromStore(report.error());
  return FromStore(std::move(*report));
}

Result<SubmittedTask> SubmitInTransaction(Dialect dialect, const RunSql& run, const NewTask& task,
                                          const SubmitOptions& options) {
  return Single(SubmitInTransaction(dialect, run, std::span(&task, 1), options));
}

}  // namespace v1
}  // namespace millrace::producer
