#include "coordinator/planner/deal.h"

#include <algorithm>
#include <cassert>

namespace millrace::engine {
namespace {

// The place of one slice among those that a worker is to get: (2i+1)/(2·need) of the way through all that are
// handed out.
struct Seat {
  std::int64_t odd = 1;
  std::int64_t need = 1;
  WorkerIndex worker = 0;
};

bool operator<(const Seat& a, const Seat& b) {
  const std::int64_t left = a.odd * b.need;
  const std::int64_t right = b.odd * a.need;
  return left != right ? left < right : a.worker < b.worker;
}

std::vector<Seat> SeatsInOrder(std::span<const Share> shares) {
  std::vector<Seat> seats;
  for (const Share& share : shares) {
    const std::int64_t need = share.due - share.held;
    for (std::int64_t i = 0; i < need; ++i) seats.push_back({2 * i + 1, need, share.worker});
  }
  std::sort(seats.begin(), seats.end());
  return seats;
}

// Of the slices that a worker holds, in their order, which does it keep?
struct Keeping {
  std::int64_t held = 0;
  std::int64_t kept = 0;
  std::int64_t seen = 0;

  bool KeepsNext() {
    ++seen;
    return seen * kept / held > (seen - 1) * kept / held;
  }
};

}  // namespace

void Deal(const PlanInput& input, const Cell& cell, std::span<const Share> shares,
          std::vector<WorkerIndex>& owners) {
  std::vector<Keeping> keeping(input.workers.size());
  for (const Share& share : shares) keeping[share.worker] = {share.held, std::min(share.held, share.due)};
  const std::vector<Seat> seats = SeatsInOrder(shares);
  auto seat = seats.begin();
  for (const SliceIndex slice : cell.slices) {
    const WorkerIndex owner = input.slices[slice].owner;
    if (owner != kNobody && keeping[owner].held > 0 && keeping[owner].KeepsNext()) {
      owners[slice] = owner;
    } else {
      assert(seat != seats.end());
      owners[slice] = (seat++)->worker;
    }
  }
}

}  // namespace millrace::engine
