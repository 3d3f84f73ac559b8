// What a payment is worth. Pure.
#pragma once

#include <millrace/handler.h>

#include <cstdint>
#include <map>

namespace award_points {

struct Award {
  std::int64_t customer_id = 0;
  std::int64_t points = 0;
};

// floor(amount) for the customer; BadInput for a missing customer_id, an amount that is no number or too
// large.
Award ReadAward(const millrace::Json& params);

struct Total {
  std::int64_t points = 0;
  std::int64_t payments = 0;
};
using Totals = std::map<std::int64_t, Total>;  // by customer

}  // namespace award_points
