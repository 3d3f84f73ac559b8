// Adds floor(amount) of a payment to the customer's points, in the task's own transaction: each payment
// counts exactly once, however often its task is tried. conf/samples/points.sql makes the table.
#include <millrace/handler.h>

#include "payment.h"

namespace award_points {
namespace {

constexpr std::uint32_t kMaxBatch = 250;

// Insert-or-add is not written the same everywhere, and a SELECT before it would race with other workers.
// What a division of integers gives tells the two families apart: 3 in SQLite, 3.5000 in MySQL and MariaDB.
bool IsSqlite(millrace::Context& context) { return context.Query("SELECT 7 / 2").rows.at(0).at(0) == "3"; }

// One statement for all customers. Their order (a map's) is the order in which rows are locked, so that two
// workers don't deadlock.
void Add(const Totals& totals, millrace::Context& context) {
  std::string sql = "INSERT INTO points_account (customer_id, points, payments) VALUES ";
  std::vector<millrace::SqlValue> values;
  for (const auto& [customer, total] : totals) {
    sql += values.empty() ? "(?, ?, ?)" : ", (?, ?, ?)";
    values.insert(values.end(), {customer, total.points, total.payments});
  }
  sql += IsSqlite(context) ? " ON CONFLICT (customer_id) DO UPDATE SET points = points + excluded.points,"
                             " payments = payments + excluded.payments"
                           : " ON DUPLICATE KEY UPDATE points = points + VALUES(points),"
                             " payments = payments + VALUES(payments)";
  context.Execute(sql, values);
}

class AwardPoints final : public millrace::BatchHandler {
  std::vector<millrace::Outcome> Run(std::span<const millrace::Task> tasks,
                                     millrace::Context& context) override {
    Totals totals;
    std::vector<millrace::Outcome> outcomes;
    for (const millrace::Task& task : tasks) outcomes.push_back(Count(task, totals));
    if (!totals.empty()) Add(totals, context);
    return outcomes;
  }

  // A payment that can't be read fails alone; the others of its batch are awarded.
  static millrace::Outcome Count(const millrace::Task& task, Totals& totals) {
    try {
      const Award award = ReadAward(task.Params());
      Total& total = totals[award.customer_id];
      total.points += award.points;
      total.payments += 1;
      return millrace::Done(std::to_string(award.points) + " points");
    } catch (const millrace::BadInput& error) {
      return millrace::Fail(error.what()).Class("bad_params");
    }
  }
};

}  // namespace
}  // namespace award_points

MILLRACE_PLUGIN("award_points", "1.0",
                millrace::Register<award_points::AwardPoints>(
                    "award_points", "Adds floor(amount) to a customer's points, exactly once",
                    award_points::kMaxBatch))
