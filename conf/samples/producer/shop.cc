// Writes an order, and the task that follows from it, in one transaction of its own: shop DATABASE ORDER
// (`millrace schema apply --store sqlite:DATABASE` makes the task tables.)
#include <millrace/producer.h>
#include <sqlite3.h>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace producer = millrace::producer;

// The shop's own connection. Throws what goes wrong.
class Database {
 public:
  explicit Database(const char* file) {
    if (sqlite3_open_v2(file, &db_, SQLITE_OPEN_READWRITE, nullptr) != SQLITE_OK) Refuse();
    sqlite3_busy_timeout(db_, 5'000);
  }
  ~Database() { sqlite3_close(db_); }

  producer::SqlAnswer Run(const std::string& sql, std::span<const producer::SqlValue> values = {}) {
    producer::SqlAnswer answer;
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(db_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) Refuse();
    int place = 0;
    for (const producer::SqlValue& value : values) {
      ++place;
      if (const auto* number = std::get_if<std::int64_t>(&value)) {
        sqlite3_bind_int64(statement, place, *number);
      } else if (const auto* text = std::get_if<std::string>(&value)) {
        sqlite3_bind_text(statement, place, text->data(), static_cast<int>(text->size()), SQLITE_TRANSIENT);
      }
    }
    int step = sqlite3_step(statement);
    for (; step == SQLITE_ROW; step = sqlite3_step(statement)) {
      auto& row = answer.rows.emplace_back();
      for (int i = 0; i < sqlite3_column_count(statement); ++i) {
        const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, i));
        row.push_back(text == nullptr ? std::nullopt : std::optional<std::string>(text));
      }
    }
    answer.affected = static_cast<std::uint64_t>(sqlite3_changes(db_));
    sqlite3_finalize(statement);
    if (step != SQLITE_DONE) Refuse();
    return answer;
  }

 private:
  [[noreturn]] void Refuse() { throw std::runtime_error(sqlite3_errmsg(db_)); }
  sqlite3* db_ = nullptr;
};

void Order(Database& database, const std::string& order) {
  database.Run("BEGIN IMMEDIATE");
  const producer::SqlValue id = order;
  database.Run("INSERT INTO orders (id) VALUES (?)", std::span(&id, 1));
  const auto task = producer::SubmitInTransaction(
      producer::Dialect::Sqlite,
      [&](const std::string& sql, std::span<const producer::SqlValue> values) {
        return database.Run(sql, values);
      },
      {.handler = "noop", .params = R"({"order":")" + order + "\"}", .key = "order-" + order});
  if (!task) throw std::runtime_error(task.error().message);
  if (!task->added()) throw std::runtime_error("the task is there already: " + task->duplicate_of);
  database.Run("COMMIT");
  std::printf("order %s and task %llu\n", order.c_str(), static_cast<unsigned long long>(task->id));
}

int main(int argc, char** argv) try {
  if (argc != 3) return 2;
  Database database(argv[1]);
  database.Run("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY)");
  Order(database, argv[2]);
  return 0;
} catch (const std::exception& refused) {
  std::fprintf(stderr, "%s\n", refused.what());
  return 1;  // what was written goes with the connection
}
