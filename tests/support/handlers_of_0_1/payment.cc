#include "payment.h"

#include <cmath>

namespace award_points {
namespace {

// Far above any payment, and far below what a sum of a batch could overflow.
constexpr double kLargestAmount = 1e15;

}  // namespace

Award ReadAward(const millrace::Json& params) {
  const std::int64_t customer = params.Integer("customer_id");
  const double points = std::floor(params.Number("amount"));
  if (std::abs(points) > kLargestAmount) throw millrace::BadInput("'amount' is out of range");
  return {customer, static_cast<std::int64_t>(points)};
}

}  // namespace award_points
